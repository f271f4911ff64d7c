// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// fault is the failure of one operation.
type fault struct {
	name string
	// sync is true for a fault of a sync, false for one of a write.
	sync bool
	// written is the share of a failed write that is written nevertheless.
	written float64
	err     error
}

var diskFaults = []fault{
	{name: "no space", err: syscall.ENOSPC},
	{name: "no space after half of it", written: 0.5, err: syscall.ENOSPC},
	{name: "quota after all of it", written: 1, err: syscall.EDQUOT},
	{name: "write fails", err: syscall.EIO},
	{name: "write is torn", written: 0.7, err: syscall.EIO},
	{name: "sync fails", sync: true, err: syscall.EINVAL},
}

// faultyFile fails one operation: the one at which countdown reaches zero. It also records the state that a power loss
// would leave.
type faultyFile struct {
	*recordedFile
	fault     fault
	countdown int
	happened  bool

	// committing is true from the first data page of a commit to its meta page.
	committing bool
	// broken is the file descriptor of the file while another one, which cannot be synced, replaces it.
	broken int
}

// breakFile makes the n-th operation of an engine fail.
func breakFile(t *testing.T, e *bolt.Engine, f fault, n int) *faultyFile {
	t.Helper()
	faulty := &faultyFile{recordedFile: recordFile(t, e), fault: f, countdown: n, broken: -1}
	e.InterceptWrites(faulty.WriteAt)
	t.Cleanup(faulty.mend)
	return faulty
}

func (f *faultyFile) hits() bool {
	f.countdown--
	f.happened = f.happened || f.countdown == 0
	return f.countdown == 0
}

func (f *faultyFile) WriteAt(b []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(offset)
	isMeta := offset < f.metaBytes
	beforeSync := isMeta || !f.committing
	f.committing = !isMeta
	switch {
	case f.fault.sync && beforeSync && f.hits():
		f.breakSync()
	case !f.fault.sync && f.hits():
		f.committing, f.metaPending = false, false
		n, err := f.write(b[:int(float64(len(b))*f.fault.written)], offset)
		return n, errors.Join(err, f.fault.err)
	}
	return f.write(b, offset)
}

// breakSync makes the next sync of bbolt fail: its descriptor is replaced by that of a pipe. The copy of the descriptor
// holds the file's lock.
func (f *faultyFile) breakSync() {
	descriptor := int(f.engine.File().Fd())
	var pipe [2]int
	broken, err := syscall.Dup(descriptor)
	if err = errors.Join(err, syscall.Pipe2(pipe[:], syscall.O_CLOEXEC), syscall.Dup3(pipe[1], descriptor, syscall.O_CLOEXEC)); err != nil {
		panic(err)
	}
	f.broken = broken
	_ = errors.Join(syscall.Close(pipe[0]), syscall.Close(pipe[1]))
}

// mend removes the fault of a sync, once a commit has failed.
func (f *faultyFile) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken < 0 {
		return
	}
	if err := syscall.Dup3(f.broken, int(f.engine.File().Fd()), syscall.O_CLOEXEC); err != nil {
		panic(err)
	}
	_ = syscall.Close(f.broken)
	f.broken, f.committing = -1, false
	f.failSync()
}

// hasHappened reports whether the operation has failed.
func (f *faultyFile) hasHappened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.happened
}

// TestFaultAtEveryStep makes each operation on the file fail once, in each way: acknowledged writes are kept, whether the
// process continues, restarts, or loses power.
func TestFaultAtEveryStep(t *testing.T) {
	path := leasedStore(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range diskFaults {
		t.Run(f.name, func(t *testing.T) {
			for n := 1; ; n++ {
				path := path + f.name
				if err := os.WriteFile(path, bytes.TrimRight(content, "\x00"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(path, int64(len(content))); err != nil {
					t.Fatal(err)
				}
				if !runWithFault(t, path, f, n) {
					t.Logf("%d operations", n-1)
					return
				}
			}
		})
	}
}

// runWithFault runs an engine whose n-th operation fails. It returns false if there is no n-th.
func runWithFault(t *testing.T, path string, f fault, n int) (happened bool) {
	t.Helper()
	options := bolt.Options{}
	if !f.sync {
		options = options.WithoutSync()
	}
	e, p := openManual(t, path, options), newPromises()
	file := breakFile(t, e, f, n)
	refused := writeThroughFault(t, e, p, file, n)
	if f.sync && refused != (n%2 == 0) && file.hasHappened() {
		t.Errorf("sync %d failed, refuses writes: %v, want it after the second sync of a commit only", n, refused)
	}
	p.check(t, e)
	c := file.capture()
	random := rand.New(rand.NewPCG(uint64(n), 0))
	for _, left := range []outcome{nothingUnsynced, powerLoss(random)} {
		checkOutcome(t, c.restore(t, left), p)
	}
	closeEngine(t, e)
	checkOutcome(t, path, p)
	return file.hasHappened()
}

// writeThroughFault writes some batches. A write fails because of the fault and for no other reason. It leaves nothing
// and later ones succeed, unless its outcome is unknown: then all later ones fail.
func writeThroughFault(t *testing.T, e *bolt.Engine, p *promises, file *faultyFile, n int) (refusing bool) {
	t.Helper()
	client := bolt.NewClient(t.Context(), e).Client
	for range byFaults(6, 12) {
		err := p.write(t.Context(), client, 0)
		if err != nil {
			file.mend()
		}
		switch {
		case err == nil && refusing:
			t.Fatalf("operation %d: a write was taken after one with an unknown outcome", n)
		case err == nil:
		case !file.hasHappened():
			t.Fatalf("operation %d: %v", n, err)
		case strings.Contains(err.Error(), "refuses writes"):
			refusing = true
		case refusing || errors.Is(file.fault.err, syscall.EIO) == errors.Is(err, bolt.ErrDiskFull) && !file.fault.sync:
			t.Fatalf("operation %d: %v", n, err)
		}
	}
	if err := e.Check(t.Context()); refusing != (err != nil) {
		t.Fatalf("operation %d: refuses writes: %v, health check: %v", n, refusing, err)
	}
	return refusing
}

// TestPowerLossAfterFailedSync makes the sync of a meta page fail, opens the file again, and simulates a power loss
// during the next commits. The operating system still returns the page that it has not written.
func TestPowerLossAfterFailedSync(t *testing.T) {
	repeatFor(t, 5, func(random *rand.Rand) {
		path := leasedStore(t)
		e, p := openManual(t, path, bolt.Options{}), newPromises()
		file := breakFile(t, e, fault{sync: true}, 2*(5+random.IntN(5)))
		client := bolt.NewClient(t.Context(), e).Client
		for p.write(t.Context(), client, 0) == nil {
		}
		file.mend()
		before := file.recordedFile
		closeEngine(t, e)

		e = openManual(t, path, bolt.Options{}.WithoutSync())
		again := recordFile(t, e)
		again.synced, again.lost = before.synced, before.lost
		if err := bolt.SyncMetaPage(metaSync{again}); err != nil { // As opening has done.
			t.Fatal(err)
		}
		p.resume(t, e, 1)
		p.revision = e.Revision()
		var captures []capture
		var made []*promises
		again.step = func() {
			made = append(made, p.clone())
			captures = append(captures, again.captureLocked())
		}
		client = bolt.NewClient(t.Context(), e).Client
		for range 5 {
			if err := p.write(t.Context(), client, 0); err != nil {
				t.Fatal(err)
			}
		}
		closeEngine(t, e)
		for i, c := range captures {
			checkOutcome(t, c.restore(t, nothingUnsynced), made[i])
			checkOutcome(t, c.restore(t, powerLoss(random)), made[i])
		}
	})
}

// metaSync records the writes and syncs of opening a file.
type metaSync struct{ *recordedFile }

func (m metaSync) ReadAt(b []byte, offset int64) (int, error)  { return m.file.ReadAt(b, offset) }
func (m metaSync) WriteAt(b []byte, offset int64) (int, error) { return m.write(b, offset) }
func (m metaSync) Sync() error {
	m.sync()
	return nil
}

// TestFileThatIsFull fills a file up to its maximum size: writes fail, and succeed after the file is opened with a higher
// one.
func TestFileThatIsFull(t *testing.T) {
	path := leasedStore(t)
	e := openManual(t, path, bolt.Options{MaxFileBytes: 1 << 20}.WithoutSync())
	file := recordFile(t, e)
	large := strings.Repeat("x", 40_000)
	written := 0
	for ; ; written++ {
		_, err := e.Put(t.Context(), &pb.PutRequest{Key: fmt.Appendf(nil, "/large/%03d", written), Value: []byte(large)})
		if errors.Is(err, bolt.ErrDiskFull) {
			break
		}
		if err != nil || written > 1000 {
			t.Fatalf("%d written: %v", written, err)
		}
	}
	if err := e.CheckSpace(); !errors.Is(err, bolt.ErrDiskFull) || !strings.Contains(err.Error(), "may have only") {
		t.Errorf("a file that is as large as it may be: %v", err)
	}
	c := file.capture()
	for _, left := range []outcome{killed, nothingUnsynced} {
		again := openManual(t, c.restore(t, left), bolt.Options{}.WithoutSync())
		if got := countOf(t, again, "/large/", 0); got != int64(written) || again.Revision() != int64(1+written) {
			t.Errorf("%d keys at revision %d, want %d", got, again.Revision(), written)
		}
		checkPages(t, again)
		set(t, again, "/after", "x")
		closeEngine(t, again)
	}
}
