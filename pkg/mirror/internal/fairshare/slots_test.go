// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fairshare_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/internal/fairshare"
)

// acquire acquires a slot in the background, and appends its owner to the order. Each slot is held for a second.
func acquire(t *testing.T, s *fairshare.Slots, owner string, order *[]string, mu *sync.Mutex) {
	t.Helper()
	go func() {
		release, err := s.Acquire(context.Background(), owner)
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		*order = append(*order, owner)
		mu.Unlock()
		<-time.After(time.Second)
		release()
	}()
	<-time.After(time.Millisecond) // So that no two slots are released at the same time.
}

func TestOwnersAlternate(t *testing.T) {
	tests := map[string]struct {
		slots int
		// each caps what an owner may hold; zero for no cap.
		each int
		// asks are the owners in the order in which they call Acquire, wants those in the order in which they get slots.
		asks, wants string
	}{
		"the oldest of one owner first":             {slots: 1, asks: "a a a", wants: "a a a"},
		"a later owner waits for one slot":          {slots: 1, asks: "a a a a b", wants: "a a b a a"},
		"two later owners":                          {slots: 1, asks: "a a a a b c", wants: "a a b c a a"},
		"owners alternate":                          {slots: 1, asks: "a a a b b b c c c", wants: "a a b c a b c b c"},
		"owners alternate with several slots":       {slots: 2, asks: "a a a a b b", wants: "a a a b a b"},
		"free slots are acquired at once":           {slots: 3, asks: "a a a", wants: "a a a"},
		"a cap leaves a slot to others":             {slots: 2, each: 1, asks: "a a a b b", wants: "a b a b a"},
		"an owner at its cap waits for itself":      {slots: 3, each: 1, asks: "a a a", wants: "a a a"},
		"the owner who has waited longest is first": {slots: 1, asks: "a b c a b c", wants: "a b c a b c"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, order, mu := fairshare.NewCapped(test.slots, cmp.Or(test.each, test.slots)), []string(nil), sync.Mutex{}
				for _, owner := range strings.Fields(test.asks) {
					acquire(t, s, owner, &order, &mu)
				}
				<-time.After(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				wants := strings.Fields(test.wants)
				if !slices.Equal(order[:len(wants)], wants) || len(order) != len(strings.Fields(test.asks)) {
					t.Errorf("order = %v, want %v", order, wants)
				}
				if s.Contended() {
					t.Error("an owner still waits")
				}
			})
		})
	}
}

// TestOwnersWhoReturn has owners acquire a slot again as soon as they have released one. Each gets at least a fourth of the slots: it waits
// for one slot of each other owner, and for the end of its own.
func TestOwnersWhoReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fairshare.New(1)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Second)
		defer cancel()
		var group sync.WaitGroup
		acquired := map[string]int{}
		for _, owner := range []string{"one", "many", "many", "many", "another"} {
			group.Go(func() {
				for ctx.Err() == nil {
					release, err := s.Acquire(ctx, owner)
					if err != nil {
						return
					}
					acquired[owner]++ // The slot guards the map.
					<-time.After(time.Second)
					release()
				}
			})
		}
		group.Wait()
		for _, owner := range []string{"one", "many", "another"} {
			if acquired[owner] < 300/4-1 {
				t.Errorf("slots of 300: %v", acquired)
			}
		}
	})
}

func TestCanceledAcquireTakesNoSlot(t *testing.T) {
	s := fairshare.New(1)
	release, err := s.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if _, err := s.Acquire(ended, "b"); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want context.Canceled", err)
		}
	}
	if s.Contended() {
		t.Error("an owner still waits")
	}
	release()
	if release, err = s.Acquire(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	release()
}

// TestSlotsAreNeitherLostNorDoubled has many owners acquire slots concurrently, and cancel at any time.
func TestSlotsAreNeitherLostNorDoubled(t *testing.T) {
	const slots = 3
	s := fairshare.New(slots)
	var held atomic.Int32
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200))*time.Microsecond)
				release, err := s.Acquire(ctx, string(rune('a'+i%5)))
				if err == nil {
					if n := held.Add(1); n > slots {
						t.Errorf("%d slots are held", n)
					}
					held.Add(-1)
					release()
				}
				cancel()
			}
		})
	}
	group.Wait()
	for range slots {
		if _, err := s.Acquire(t.Context(), "last"); err != nil {
			t.Fatal(err)
		}
	}
}
