// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	interval = 100 * time.Millisecond
	drain    = 5 * time.Second
	rowsKey  = prefix + "/outbox/"
)

// owner owns a buffer. It has the desired values by key; the buffer has the changed keys.
type owner struct {
	mu     sync.Mutex
	buffer *table.Buffer[string]
	values map[string]string
	// encoded is the number of encoded items; written are the items for which Done was called.
	encoded  int
	written  []string
	failures int
	// blocked are the arguments of Blocked, tooLarge those of TooLarge.
	blocked  []error
	tooLarge []string
}

func newOwner(kv *memoryKV, change func(*table.BufferConfig[string])) *owner {
	o := &owner{values: map[string]string{}}
	config := table.BufferConfig[string]{
		Table: table.New(kv, prefix).Table("outbox"), Lock: &o.mu, MaxRows: 100, MaxBytes: 10_000,
		Interval: interval, DrainTimeout: drain,
		Encode: o.encode, Done: o.done, Blocked: o.setBlocked,
	}
	if change != nil {
		change(&config)
	}
	o.buffer = table.NewBuffer(config)
	return o
}

func (o *owner) encode(take func() []string) (writes table.Writes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range take() {
		o.encoded++
		if value, found := o.values[key]; found {
			writes.Rows = append(writes.Rows, row(key, value))
		} else {
			writes.Deleted = append(writes.Deleted, key)
		}
	}
	return writes
}

func (o *owner) done(items []string, err error) {
	if err != nil {
		o.failures++
		return
	}
	o.written = append(o.written, items...)
}

func (o *owner) setBlocked(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blocked = append(o.blocked, err)
}

func (o *owner) put(key, value string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.values[key] = value
	o.buffer.Add(key, len(value))
}

func (o *owner) delete(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.values, key)
	o.buffer.Add(key, 0)
}

// putWhenRoom waits for space before it puts a row.
func (o *owner) putWhenRoom(ctx context.Context, key, value string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.buffer.WaitForRoom(ctx); err != nil {
		return err
	}
	o.values[key] = value
	o.buffer.Add(key, len(value))
	return nil
}

// remove deletes an item and its value.
func (o *owner) remove(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.values, key)
	return o.buffer.Remove(key)
}

// run runs the buffer until stop is called.
func (o *owner) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.buffer.Run(ctx)
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// sleep advances the time, and then waits until all goroutines are blocked.
func sleep(duration time.Duration) {
	time.Sleep(duration) //nolint:forbidigo // virtual time
	synctest.Wait()
}

// wantRows compares the stored rows with rows as key=value.
func wantRows(t *testing.T, kv *memoryKV, want ...string) {
	t.Helper()
	var got []string
	for key, value := range kv.stored() {
		got = append(got, strings.TrimPrefix(key, rowsKey)+"="+value)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("stored rows %q, want %q", got, want)
	}
}

func TestBufferWritesFirstItemAtOnceAndOthersEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv, began := newMemoryKV(), time.Now()
		o := newOwner(kv, nil)
		o.run(t)
		o.put("a", "1")
		synctest.Wait()
		wantRows(t, kv, "a=1")
		for i := range 20 {
			sleep(10 * time.Millisecond)
			o.put(fmt.Sprintf("b%02d", i%10), fmt.Sprint(i))
		}
		sleep(interval)
		var at []time.Duration
		for _, when := range kv.times {
			at = append(at, when.Sub(began))
		}
		if want := []time.Duration{0, interval, 2 * interval, 3 * interval}; !slices.Equal(at, want[:len(at)]) || len(at) < 3 {
			t.Errorf("transactions at %v, want %v", at, want)
		}
		sleep(time.Hour)
		o.put("c", "1")
		synctest.Wait()
		if got := kv.times[len(kv.times)-1]; !got.Equal(time.Now()) {
			t.Errorf("the first item after a rest waited %v", time.Since(got))
		}
	})
}

func TestBufferEncodesAnItemOnceForManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		o := newOwner(kv, nil)
		for i := range 1000 {
			o.put("a", fmt.Sprint(i))
		}
		o.put("b", "1")
		o.delete("b")
		if err := o.buffer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantRows(t, kv, "a=999")
		if o.encoded != 2 {
			t.Errorf("%d items were encoded, want 2", o.encoded)
		}
	})
}

func TestBufferWritesItemAgainThatChangesDuringWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		kv.latency = time.Second
		o := newOwner(kv, nil)
		o.put("a", "1")
		o.put("b", "1")
		o.run(t)
		sleep(time.Second / 2)
		o.put("a", "2")
		sleep(time.Second)
		wantRows(t, kv, "a=1", "b=1")
		sleep(time.Second)
		wantRows(t, kv, "a=2", "b=1")
		if want := []string{"a", "b", "a"}; !slices.Equal(o.written, want) {
			t.Errorf("written %v, want %v", o.written, want)
		}
	})
}

func TestBufferKeepsOrderAcrossTransactionsAndFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3*table.MaxAtomicRows + 7
		kv := newMemoryKV()
		kv.failAt = 2 // the second transaction of the first attempt
		o := newOwner(kv, func(config *table.BufferConfig[string]) { config.MaxRows = 10 * n })
		var want []string
		for i := range n {
			key := fmt.Sprintf("%03d", (i*7)%n)
			o.put(key, "1")
			want = append(want, rowsKey+key)
		}
		o.run(t)
		synctest.Wait()
		if got := len(kv.stored()); got != table.MaxAtomicRows {
			t.Fatalf("%d rows are stored after a part of a write, want %d", got, table.MaxAtomicRows)
		}
		o.put("later", "1")
		o.put("007", "2")
		sleep(time.Second)
		if got := kv.order; !slices.Equal(got, append(want, rowsKey+"later")) {
			t.Errorf("rows were not stored in their order: %v", got)
		}
		if got := kv.stored()[rowsKey+"007"]; got != "2" {
			t.Errorf("a row that changed before the retry is %q", got)
		}
	})
}

func TestBufferRetriesUntilStoreRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		kv.failure = errStoreFails
		o := newOwner(kv, nil)
		o.run(t)
		o.put("a", "1")
		sleep(time.Minute)
		if kv.attempts < 8 || kv.attempts > 20 {
			t.Errorf("%d attempts in a minute", kv.attempts)
		}
		o.put("a", "2")
		o.put("b", "1")
		kv.set(func() { kv.failure = nil })
		sleep(20 * time.Second)
		wantRows(t, kv, "a=2", "b=1")
		if last := len(o.blocked) - 1; last < 1 || o.blocked[last] != nil || !errors.Is(o.blocked[0], errStoreFails) ||
			slices.Contains(o.blocked[:last], nil) {
			t.Errorf("blocked with %v", o.blocked)
		}
		if o.failures != len(o.blocked)-1 {
			t.Errorf("Done was called with %d errors, Blocked with %d", o.failures, len(o.blocked)-1)
		}
	})
}

func TestBufferTimesOutOnStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		kv.hangs = true
		o := newOwner(kv, nil)
		o.run(t)
		o.put("a", "1")
		sleep(6 * time.Second)
		o.mu.Lock()
		if len(o.blocked) != 1 || !errors.Is(o.blocked[0], context.DeadlineExceeded) {
			t.Errorf("blocked with %v", o.blocked)
		}
		o.mu.Unlock()
		kv.set(func() { kv.hangs = false })
		sleep(20 * time.Second)
		wantRows(t, kv, "a=1")
	})
}

func TestFlushReturnsWhenItemsAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		kv.latency = time.Second
		o := newOwner(kv, nil)
		o.run(t)
		o.put("a", "1")
		sleep(time.Second / 2)
		var group sync.WaitGroup
		for i := range 10 {
			group.Go(func() {
				key := fmt.Sprint(i)
				o.put(key, "1")
				if err := o.buffer.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				if kv.stored()[rowsKey+key] != "1" {
					t.Errorf("row %s is not durable after Flush", key)
				}
			})
		}
		group.Wait()
		if got := kv.transactions(); got != 2 {
			t.Errorf("11 rows took %d transactions, want 2", got)
		}
	})
}

func TestFlushReturnsErrorAndKeepsItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		kv.failure = errStoreFails
		o := newOwner(kv, nil)
		o.put("a", "1")
		if err := o.buffer.Flush(t.Context()); !errors.Is(err, errStoreFails) {
			t.Errorf("Flush returned %v", err)
		}
		kv.failure, kv.hangs = nil, true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := o.buffer.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("Flush returned %v after %v", err, time.Since(began))
		}
		kv.hangs = false
		if err := o.buffer.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		wantRows(t, kv, "a=1")
		if err := o.buffer.Flush(t.Context()); err != nil || kv.transactions() != 1 {
			t.Errorf("Flush of an empty buffer made a transaction, or failed: %v", err)
		}
	})
}

func TestExclusiveExcludesWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		o := newOwner(kv, nil)
		o.run(t)
		held := make(chan struct{})
		release := make(chan struct{})
		go func() {
			if err := o.buffer.Exclusive(t.Context(), func(context.Context) error { close(held); <-release; return nil }); err != nil {
				t.Error(err)
			}
		}()
		<-held
		o.put("a", "1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.buffer.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush returned %v during an exclusive write", err)
		}
		wantRows(t, kv)
		close(release)
		synctest.Wait()
		wantRows(t, kv, "a=1")
	})
}

func TestWaitForRoom(t *testing.T) {
	for bound, config := range map[string]struct{ rows, bytes int }{
		"rows":  {4, 1000},
		"bytes": {1000, 4},
	} {
		t.Run(bound, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newMemoryKV()
				kv.failure = errStoreFails
				o := newOwner(kv, func(c *table.BufferConfig[string]) { c.MaxRows, c.MaxBytes = config.rows, config.bytes })
				o.run(t)
				var put []string
				go func() {
					for i := range 10 {
						if err := o.putWhenRoom(t.Context(), fmt.Sprint(i), "x"); err != nil {
							t.Error(err)
						}
						put = append(put, fmt.Sprint(i))
					}
				}()
				sleep(time.Minute)
				if len(put) != 4 {
					t.Errorf("%d rows were put while the store failed, want 4", len(put))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := o.putWhenRoom(ctx, "other", "x"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("waiting for room returned %v", err)
				}
				kv.set(func() { kv.failure = nil })
				sleep(20 * time.Second)
				if got := len(kv.stored()); got != 10 || len(put) != 10 {
					t.Errorf("%d rows are stored, %d were put", got, len(put))
				}
			})
		})
	}
}

func TestBufferHalfFullDoesNotWaitForInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		o := newOwner(kv, func(config *table.BufferConfig[string]) { config.Interval = time.Hour })
		o.run(t)
		o.put("first", "1")
		synctest.Wait()
		for i := range 49 {
			o.put(fmt.Sprint(i), "1")
		}
		sleep(time.Minute)
		if got := len(kv.stored()); got != 1 {
			t.Errorf("%d rows are stored before the interval is over", got)
		}
		o.put("one more", "1")
		synctest.Wait()
		if got := len(kv.stored()); got != 51 {
			t.Errorf("%d rows are stored when the buffer is half full", got)
		}
	})
}

func TestOverAndRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		o := newOwner(kv, func(config *table.BufferConfig[string]) { config.MaxRows, config.MaxBytes = 2, 10 })
		is := func(want bool) {
			t.Helper()
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.buffer.Over() != want {
				t.Errorf("over: %v", !want)
			}
		}
		o.put("a", "12345")
		o.put("b", "12345")
		is(false)
		o.put("c", "")
		is(true)
		if !o.remove("c") {
			t.Error("an item that waited counts as being written")
		}
		o.put("b", "123456")
		is(true)
		o.put("b", "1")
		is(false)
		if err := o.buffer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantRows(t, kv, "a=12345", "b=1")
		if o.remove("a"); o.buffer.Over() {
			t.Error("removing an item that is not in the buffer makes it full")
		}
	})
}

func TestItemRemovedDuringFailedWriteIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		kv.latency, kv.failAt = time.Second, 1
		o := newOwner(kv, nil)
		o.put("a", "1")
		o.put("b", "1")
		o.run(t)
		sleep(time.Second / 2)
		if o.remove("a") {
			t.Error("an item counts as not being written during its write")
		}
		sleep(10 * time.Second)
		wantRows(t, kv, "b=1")
		if kv.attempts != 2 {
			t.Errorf("%d attempts", kv.attempts)
		}
	})
}

func TestItemThatIsTooLargeIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		kv.maxValue = 10
		kv.failAt = 3 // after the failed attempt with all, and the first row
		var o *owner
		o = newOwner(kv, func(config *table.BufferConfig[string]) {
			config.TooLarge = func(key string) { o.tooLarge = append(o.tooLarge, key) }
		})
		for i := range 10 {
			value := "1"
			if i%4 == 2 {
				value = strings.Repeat("1", 11)
			}
			o.put(fmt.Sprint(i), value)
		}
		o.run(t)
		sleep(time.Minute)
		wantRows(t, kv, "0=1", "1=1", "3=1", "4=1", "5=1", "7=1", "8=1", "9=1")
		if want := []string{"2", "6"}; !slices.Equal(o.tooLarge, want) {
			t.Errorf("too large: %v, want %v", o.tooLarge, want)
		}
		if want := []string{"0", "1", "3", "4", "5", "7", "8", "9"}; !slices.Equal(o.written, want) {
			t.Errorf("written %v, want %v", o.written, want)
		}
		if !o.buffer.Full() && len(o.values) == 10 {
			o.put("again", "1")
			sleep(time.Second)
			if kv.stored()[rowsKey+"again"] != "1" {
				t.Error("nothing is written after an item that is too large")
			}
		}
	})
}

func TestRunWritesTheRestAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, timeout := range map[string]time.Duration{"drains": drain, "does not drain": 0} {
			kv := newMemoryKV()
			o := newOwner(kv, func(config *table.BufferConfig[string]) { config.DrainTimeout = timeout })
			stop := o.run(t)
			o.put("a", "1")
			synctest.Wait()
			o.put("b", "1")
			stop()
			if got, want := len(kv.stored()), map[bool]int{true: 2, false: 1}[timeout > 0]; got != want {
				t.Errorf("%s: %d rows are stored, want %d", name, got, want)
			}
		}
	})
}

func TestRunAttemptsNoWriteAfterItsContextEnded(t *testing.T) {
	kv := newMemoryKV()
	o := newOwner(kv, func(config *table.BufferConfig[string]) { config.DrainTimeout = 0 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		o.put("a", "1")
		o.buffer.Run(ctx)
	}
	if kv.attempts > 0 {
		t.Errorf("%d attempts", kv.attempts)
	}
}

func TestRunEndsWithStoreThatHangsOrFails(t *testing.T) {
	for name, failure := range map[string]func(*memoryKV){
		"hangs": func(kv *memoryKV) { kv.hangs = true },
		"fails": func(kv *memoryKV) { kv.failure = errStoreFails },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newMemoryKV()
				failure(kv)
				o := newOwner(kv, nil)
				stop := o.run(t)
				o.put("a", "1")
				sleep(time.Minute)
				began := time.Now()
				stop()
				if took := time.Since(began); took > drain {
					t.Errorf("Run ended after %v", took)
				}
			})
		})
	}
}

// TestDeathLosesOnlyWhatIsBuffered kills the process at each transaction: acknowledged rows are stored, and the stored
// rows are the first of those added.
func TestDeathLosesOnlyWhatIsBuffered(t *testing.T) {
	const n = 3 * table.MaxAtomicRows
	for killAt := 1; killAt < 8; killAt++ {
		synctest.Test(t, func(t *testing.T) {
			kv := newMemoryKV()
			kv.killAt = killAt
			o := newOwner(kv, func(config *table.BufferConfig[string]) { config.MaxRows = 2 * n })
			stop := o.run(t)
			for i := range n {
				o.put(fmt.Sprintf("%03d", i), "1")
				if i%100 == 0 {
					sleep(interval)
				}
			}
			sleep(interval)
			stop()
			stored := kv.stored()
			for _, key := range o.written {
				if stored[rowsKey+key] != "1" {
					t.Errorf("killed at %d: acknowledged row %s is lost", killAt, key)
				}
			}
			for i := range len(stored) {
				if key := fmt.Sprintf("%03d", i); stored[rowsKey+key] != "1" {
					t.Errorf("killed at %d: row %s is missing before others", killAt, key)
				}
			}
		})
	}
}

// TestRandomBuffers changes random rows with a store that is slow and fails at random.
func TestRandomBuffers(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			kv := newMemoryKV()
			o := newOwner(kv, nil)
			stop := o.run(t)
			for range 300 {
				kv.set(func() {
					kv.latency, kv.failure = time.Duration(random.IntN(200))*time.Millisecond, nil
					if random.IntN(4) == 0 {
						kv.failure = errStoreFails
					}
				})
				key := fmt.Sprint(random.IntN(20))
				switch random.IntN(6) {
				case 0:
					o.delete(key)
				case 1:
					if o.buffer.Flush(t.Context()) == nil {
						wantSame(t, kv, o)
					}
				default:
					o.put(key, fmt.Sprint(random.IntN(1000)))
				}
				sleep(time.Duration(random.IntN(50)) * time.Millisecond)
			}
			kv.set(func() { kv.failure = nil })
			stop()
			wantSame(t, kv, o)
			if o.mu.Lock(); o.buffer.Full() {
				t.Error("the buffer is full in the end")
			}
			o.mu.Unlock()
		})
	}
}

// wantSame compares the stored rows with the owner's values.
func wantSame(t *testing.T, kv *memoryKV, o *owner) {
	t.Helper()
	want := map[string]string{}
	o.mu.Lock()
	for key, value := range o.values {
		want[rowsKey+key] = value
	}
	o.mu.Unlock()
	if got := kv.stored(); !maps.Equal(got, want) {
		t.Errorf("stored %v, want %v", got, want)
	}
}

func TestBufferDeletesRanges(t *testing.T) {
	kv := newMemoryKV()
	kv.rows = map[string]string{rowsKey + "a/1": "", rowsKey + "a/2": "", rowsKey + "b": ""}
	var mu sync.Mutex
	buffer := table.NewBuffer(table.BufferConfig[int]{
		Table: table.New(kv, prefix).Table("outbox"), Lock: &mu, MaxRows: 1, MaxBytes: 1,
		Encode: func(take func() []int) table.Writes {
			mu.Lock()
			defer mu.Unlock()
			take()
			return table.Writes{Rows: []table.Row{row("a", "head")}, Ranges: []table.Range{{From: "a/", To: "a0"}}}
		},
	})
	mu.Lock()
	buffer.Add(1, 1)
	mu.Unlock()
	if err := buffer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantRows(t, kv, "a=head", "b=")
}

func TestFillLevelIsMeasuredWhileRunning(t *testing.T) {
	level := func() [2]float64 {
		values := metrictest.Values(t)
		return [2]float64{values["work_buffer_rows outbox"], values["work_buffer_bytes outbox"]}
	}
	synctest.Test(t, func(t *testing.T) {
		kv := newMemoryKV()
		kv.failure = errStoreFails
		first, second := newOwner(kv, nil), newOwner(kv, nil)
		stopFirst, stopSecond := first.run(t), second.run(t)
		first.put("a", "123")
		second.put("b", "45")
		second.put("c", "6")
		synctest.Wait()
		if got, want := level(), [2]float64{3, 6}; got != want {
			t.Errorf("fill level %v, want %v", got, want)
		}
		stopSecond()
		if got, want := level(), [2]float64{1, 3}; got != want {
			t.Errorf("fill level without the second buffer %v, want %v", got, want)
		}
		kv.set(func() { kv.failure = nil })
		stopFirst()
		if got, want := level(), [2]float64{}; got != want {
			t.Errorf("fill level in the end %v, want %v", got, want)
		}
	})
}
