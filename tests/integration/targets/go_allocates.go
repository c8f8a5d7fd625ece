// go_allocates SECONDS: goroutines that allocate trees, so that the runtime collects all the time,
// much of it on other stacks than theirs.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

type node struct {
	left, right *node
	text        string
}

//go:noinline
func grow(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{grow(depth - 1), grow(depth - 1), fmt.Sprint(depth)}
}

func grower(trees chan *node) {
	for {
		trees <- grow(12)
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	end := time.Now().Add(time.Duration(seconds * 1e9))
	trees := make(chan *node)
	go grower(trees)
	go grower(trees)
	for time.Now().Before(end) {
		<-trees
	}
}
