// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

const (
	// crashStore is the environment variable with the file that a child process writes until it is killed.
	crashStore = "SLIPSTREAM_TEST_CRASH_STORE"
	// crashClose is the environment variable that makes the child close and reopen the file crashCycles times.
	crashClose  = "SLIPSTREAM_TEST_CRASH_CLOSE"
	crashCycles = 50
	// crashSurvived is the exit code of a child that was not killed.
	crashSurvived = 3
)

// errSurvived is returned by a child that was not killed.
var errSurvived = errors.New("process was not killed")

// TestMain runs the tests, or the child of TestKilledWriter or of TestLinearizableAcrossKills.
func TestMain(m *testing.M) {
	if path := os.Getenv(recordStore); path != "" {
		fmt.Fprintln(os.Stderr, recordUntilKilled(path))
		os.Exit(1)
	}
	if path := os.Getenv(crashStore); path != "" {
		err := writeUntilKilled(path)
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errSurvived) {
			os.Exit(crashSurvived)
		}
		os.Exit(1)
	}
	// Parallel tests of this package mostly wait, so more of them run than there are cores. Those of upstream's suite do not, because
	// they wait for a limited time.
	if os.Getenv(inChild) == "" {
		if err := flag.Set("test.parallel", "4"); err != nil { // The flag -parallel overrides it.
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestKilledWriter repeatedly kills a process that writes and compacts. Every acknowledged write must be in the store, and
// the history must be complete.
func TestKilledWriter(t *testing.T) {
	t.Parallel() // It mostly waits for other processes.
	path := filepath.Join(t.TempDir(), "store.db")
	acknowledged := map[string]int64{}
	repeatFor(t, 6, func(random *rand.Rand) {
		killWriter(t, path, 100+random.IntN(500), acknowledged)
		e := reopen(t, path)
		checkAcknowledged(t, e, acknowledged)
		checkHistory(t, e, acknowledged)
		checkWhole(t, e)
		checkPages(t, e)
		closeEngine(t, e)
	})
}

// killWriter starts a writer, records its acknowledged writes, and kills it at a random time after n of them. A writer
// that is killed at a failpoint may stop earlier. It returns false if the writer was not killed.
func killWriter(t *testing.T, path string, n int, acknowledged map[string]int64, environment ...string) (killed bool) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(append(os.Environ(), crashStore+"="+path), environment...)
	child.Stderr = &strings.Builder{}
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Scan(); n-- {
		var key string
		var revision int64
		if _, err := fmt.Sscan(lines.Text(), &key, &revision); err != nil {
			continue // The kill truncated this line.
		}
		acknowledged[key] = revision
		if n == 0 {
			time.AfterFunc(rand.N(20*time.Millisecond), func() { _ = child.Process.Kill() })
		}
	}
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() == 1 {
		t.Fatalf("the writer was not killed: %v\n%s", err, child.Stderr)
	}
	return child.ProcessState.ExitCode() != crashSurvived
}

// checkHistory fails unless a watch of the uncompacted history has every acknowledged write.
func checkHistory(t *testing.T, e *bolt.Engine, acknowledged map[string]int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := e.CompactRevision() + 1
	if first > e.Revision() {
		return
	}
	seen := map[string]int64{}
	for response := range bolt.NewClient(ctx, e).Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(first)) {
		for _, event := range response.Events {
			seen[string(event.Kv.Key)] = event.Kv.ModRevision
		}
		if response.Header.Revision >= e.Revision() {
			break
		}
	}
	for key, revision := range acknowledged {
		if revision >= first && seen[key] != revision {
			t.Fatalf("%s was acknowledged at %d, a watch from %d returned it at %d", key, revision, first, seen[key])
		}
	}
}

func checkAcknowledged(t *testing.T, e *bolt.Engine, acknowledged map[string]int64) {
	t.Helper()
	for key, revision := range acknowledged {
		response, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte(key)})
		if err != nil {
			t.Fatal(err)
		}
		if len(response.Kvs) != 1 || response.Kvs[0].ModRevision != revision {
			t.Fatalf("%s was acknowledged at %d, the store has %v", key, revision, response.Kvs)
		}
		if revision > e.Revision() {
			t.Fatalf("%s was acknowledged at %d, the store is at %d", key, revision, e.Revision())
		}
	}
}

// checkWhole fails if the log has a gap or a counter is wrong.
func checkWhole(t *testing.T, e *bolt.Engine) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := bolt.NewClient(ctx, e)
	first := e.CompactRevision() + 1
	if first > 1 && first <= e.Revision() {
		if err := checkGapless(client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(first)), first, e.Revision()); err != nil {
			t.Fatal(err)
		}
	}
	all, err := client.KV.Get(ctx, "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	if counted := countOf(t, e, "/", 0); counted != int64(len(all.Kvs)) {
		t.Fatalf("count is %d, the store has %d keys", counted, len(all.Kvs))
	}
}

// writeUntilKilled writes with several writers and prints the acknowledged writes.
func writeUntilKilled(path string) error {
	for cycle := range crashCycles {
		if err := writeCycle(path, cycle); err != nil || os.Getenv(crashClose) == "" {
			return err
		}
	}
	return errSurvived
}

// writeCycle opens the file, writes to it, and closes it after a number of writes if crashClose is set.
func writeCycle(path string, cycle int) error {
	ctx := context.Background()
	e, err := bolt.Open(ctx, path, bolt.Options{CompactionInterval: 30 * time.Millisecond})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var group errgroup.Group
	value := []byte(strings.Repeat("x", 900))
	for w := range 16 {
		group.Go(func() error {
			for i := 0; os.Getenv(crashClose) == "" || i < 20; i++ {
				key := fmt.Sprintf("/%d/%d/%d/%d", os.Getpid(), cycle, w, i)
				response, err := e.Put(ctx, &pb.PutRequest{Key: []byte(key), Value: value})
				if err != nil {
					return err
				}
				mu.Lock()
				fmt.Println(key, response.Header.Revision)
				mu.Unlock()
			}
			return nil
		})
	}
	return errors.Join(group.Wait(), e.Close())
}
