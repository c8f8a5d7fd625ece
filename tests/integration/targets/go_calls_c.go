// go_calls_c SECONDS: a goroutine that calls two C functions in turn, from two functions, at one depth.
// qsort uses the frame pointer for other things.
package main

/*
#cgo CFLAGS: -O2 -fomit-frame-pointer
#include <stdlib.h>

static int compare(const void *a, const void *b) {
  return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static inline unsigned sort(unsigned seed) {
  int values[4000];
  for (int i = 0; i < 4000; i++) values[i] = (int)((seed = seed * 1664525u + 1013904223u) >> 1);
  qsort(values, 4000, sizeof *values, compare);
  return (unsigned)values[2000];
}

__attribute__((noinline)) static unsigned sort_first(unsigned seed) { return sort(seed) + 1; }
__attribute__((noinline)) static unsigned sort_second(unsigned seed) { return sort(seed) + 3; }
*/
import "C"

import (
	"os"
	"strconv"
	"time"
)

//go:noinline
func first(seed uint32) uint32 { return uint32(C.sort_first(C.uint(seed))) }

//go:noinline
func second(seed uint32) uint32 { return uint32(C.sort_second(C.uint(seed))) }

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	end := time.Now().Add(time.Duration(seconds * 1e9))
	seed := uint32(1)
	for time.Now().Before(end) {
		seed = second(first(seed))
	}
	if seed == 0 {
		os.Exit(1)
	}
}
