// go_work SECONDS: two goroutines that are busy in a deep recursion which allocates nothing, so that
// the runtime, which changes stacks on its way, has little to do.
package main

import (
	"os"
	"strconv"
	"time"
)

var end time.Time

//go:noinline
func leaf(value uint64) uint64 {
	for i := 0; i < 2000; i++ {
		value = value*6364136223846793005 + 1
	}
	return value
}

//go:noinline
func descend(depth int, value uint64) uint64 {
	if depth == 0 {
		return leaf(value)
	}
	return descend(depth-1, value) + leaf(value)
}

func work(done chan uint64) {
	var sum uint64
	for time.Now().Before(end) {
		sum += descend(20, sum)
	}
	done <- sum
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	end = time.Now().Add(time.Duration(seconds * 1e9))
	done := make(chan uint64)
	go work(done)
	go work(done)
	if <-done+<-done == 0 {
		os.Exit(1)
	}
}
