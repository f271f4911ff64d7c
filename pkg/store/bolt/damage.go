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

// ErrDamaged is returned for a file with content that no store has.
var ErrDamaged = errors.New("the store is damaged")

// damaged returns an error of [ErrDamaged] with the first problem found, and what to do.
func damaged(problem string) error {
	return fmt.Errorf("%w: %s; keep a copy of the data directory as it is, list all damage with \"slipstream store check\", "+
		"and restore a backup", ErrDamaged, problem)
}

// guarded runs a read of a mapped file, and returns an error of [ErrDamaged] if bbolt panics or memory faults: bbolt
// trusts the content of the file, and memory that the file no longer backs cannot be read. Any other panic is a bug of
// the reader, and is raised again. The stack is logged in each case. It covers the calling goroutine only.
func guarded(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		problem := fmt.Sprintf("reading it failed with %v", cause)
		klog.Background().Error(nil, "Reading a store panicked", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		if !isFault(cause) && !bboltPanicked() {
			panic(cause)
		}
		err = damaged(problem)
	}()
	return read()
}

// isFault reports whether a panic was caused by unreadable memory. A nil pointer has no address.
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

// bboltPanicked reports, while a deferred function handles a panic, whether bbolt raised it and not a function that bbolt
// called: the innermost function of either decides. Functions that both call belong to their caller.
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

// checkPages returns an error if the pages below a meta page violate what bbolt assumes.
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
