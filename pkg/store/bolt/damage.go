// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/klog/v2"
)

// ErrDamaged says that a file holds what no store holds.
var ErrDamaged = errors.New("the store is damaged")

// damaged is an error of [ErrDamaged] about what was found first, and what to do.
func damaged(problem string) error {
	return fmt.Errorf("%w: %s; keep a copy of the data directory as it is, list all that is wrong with \"slipstream store check\", "+
		"and restore a backup", ErrDamaged, problem)
}

// guarded runs what reads a mapped file, and returns an error of [ErrDamaged] where bbolt panics
// or memory faults: bbolt believes what it reads, and memory that a file no longer backs cannot be
// read. Any other panic is a bug in a reader, and is raised again. Where it was is logged in each case.
// It covers the calling goroutine only.
func guarded(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		problem := fmt.Sprintf("reading it ended with %v", cause)
		klog.Background().Error(nil, "Reading a store panicked", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		if !isFault(cause) && !bboltPanicked() {
			panic(cause)
		}
		err = damaged(problem)
	}()
	return read()
}

// isFault reports whether a panic comes of memory that cannot be read. A nil pointer has no address.
func isFault(cause any) bool {
	fault, ok := cause.(interface {
		runtime.Error
		Addr() uintptr
	})
	return ok && fault.Addr() != 0
}

const (
	bboltPath  = "go.etcd.io/bbolt"
	modulePath = "github.com/configbutler/slipstream/"
)

// bboltPanicked reports, while a deferred function handles a panic, whether it came out of bbolt, and not out of what
// bbolt called: the innermost function decides that is of either. What both call is the caller's.
func bboltPanicked() bool {
	callers := make([]uintptr, 256)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	panicking := false // The functions before that one handle the panic.
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case panicking && strings.HasPrefix(frame.Function, bboltPath):
			return true
		case panicking && strings.HasPrefix(frame.Function, modulePath):
			return false
		}
		if !more {
			return false
		}
	}
}

// checkPages fails if the pages that a meta page leads to are not what bbolt takes them for.
func checkPages(ctx context.Context, file io.ReaderAt, meta metaPage, size int64) error {
	first := ""
	err := verifyPages(ctx, file, meta, size, Verification{Checking: func(string, int64) {}}, func(problem string) {
		if first == "" {
			first = problem
		}
	})
	if err == nil && first != "" {
		err = damaged(first)
	}
	return err
}
