// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/configbutler/slipstream/pkg/environment/syncer"
)

// reads counts reads of a text.
type reads struct {
	syncer.SharedReads
	count int
}

// is checks what a read returns, and how many were carried out so far.
func (r *reads) is(t *testing.T, after syncer.Moment, key, text string, count int) {
	t.Helper()
	got, err := r.Read(t.Context(), after, key, func(context.Context) (string, error) {
		r.count++
		return fmt.Sprint(key, r.count), nil
	})
	if got != text || err != nil || r.count != count {
		t.Errorf("read %q after %d reads, error %v; want %q after %d", got, r.count, err, text, count)
	}
}

func TestReadsAreSharedFromAMomentOn(t *testing.T) {
	var r reads
	before := r.Now()
	r.is(t, before, "a", "a1", 1)
	r.is(t, before, "a", "a1", 1)
	r.is(t, before, "b", "b2", 2)
	changed := r.Now()
	r.is(t, changed, "a", "a3", 3)
	r.is(t, before, "a", "a3", 3)
	r.is(t, changed, "b", "b4", 4)
}

func TestFailuresAreNotShared(t *testing.T) {
	var r reads
	at, failure := r.Now(), errors.New("no")
	if _, err := r.Read(t.Context(), at, "a", func(context.Context) (string, error) { return "", failure }); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	r.is(t, at, "a", "a1", 1)
}

// TestPanicsEndReads checks that nothing waits for a read that has panicked.
func TestPanicsEndReads(t *testing.T) {
	var r reads
	at := r.Now()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		_, _ = r.Read(t.Context(), at, "a", func(context.Context) (string, error) { panic("no") })
	}()
	r.is(t, at, "a", "a1", 1)
}

// TestDroppedReadsAreFreed checks that nothing refers to what is not kept, long before it would have expired.
func TestDroppedReadsAreFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r syncer.SharedReads
		text := new(string)
		*text = strings.Repeat("x", syncer.MaxSharedBytes)
		dropped := weak.Make(text)
		if err := r.Keep(t.Context(), "a", text); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		if dropped.Value() != nil {
			t.Error("a read that is not kept still takes memory")
		}
	})
}

// TestReadsInProgressAreShared has callers that wait for a read that began after their moments, and one that must not: its moment is later.
func TestReadsInProgressAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r syncer.SharedReads
		before := r.Now()
		slow := func(ctx context.Context, after syncer.Moment, text string) (string, error) {
			return r.Read(ctx, after, "a", func(ctx context.Context) (string, error) {
				select {
				case <-time.After(time.Minute):
					return text, nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = slow(ctx, before, "given up") }()
		synctest.Wait()
		results := make(chan string, 3)
		for _, after := range []syncer.Moment{before, before, r.Now()} {
			go func() {
				text, err := slow(t.Context(), after, fmt.Sprint("after ", after))
				results <- fmt.Sprint(text, err)
			}()
			synctest.Wait()
		}
		cancel()
		for range 3 {
			if got := <-results; got != "after 3<nil>" {
				t.Errorf("read %q", got)
			}
		}
	})
}

func TestSharedReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reads
		at := r.Now()
		put := func(key int, bytes int) {
			_, err := r.Read(t.Context(), at, fmt.Sprint(key), func(context.Context) (string, error) { return strings.Repeat("x", bytes), nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		for key := range 100 {
			put(key, 1<<20)
		}
		if number, size := r.Kept(); number != syncer.MaxSharedBytes>>20-1 || size > syncer.MaxSharedBytes {
			t.Errorf("%d reads of %d bytes are kept", number, size)
		}
		put(100, syncer.MaxSharedBytes)
		if number, size := r.Kept(); number != 0 || size != 0 {
			t.Errorf("%d reads of %d bytes are kept, after one that is too large", number, size)
		}
		put(101, 1)
		<-time.After(syncer.SharedFor - time.Second)
		if number, _ := r.Kept(); number != 1 {
			t.Errorf("%d reads are kept", number)
		}
		<-time.After(2 * time.Second)
		if number, size := r.Kept(); number != 0 || size != 0 {
			t.Errorf("%d reads of %d bytes are kept for too long", number, size)
		}
	})
}
