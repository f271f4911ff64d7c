// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/backup"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

const hotWriters = 16

// pairs are writers of pairs: a key in the work store first, then the same in the API's.
type pairs struct {
	*server
	// begun and answered are the numbers of started and acknowledged pairs, by writer.
	begun, answered [hotWriters]atomic.Int64
}

// write writes pairs until ctx ends.
func (p *pairs) write(ctx context.Context, writer int) error {
	value := strings.Repeat("x", 300)
	for n := int64(1); ctx.Err() == nil; n++ {
		key := fmt.Sprintf("/pairs/%02d/%08d", writer, n)
		p.begun[writer].Store(n)
		if err := errors.Join(put(context.WithoutCancel(ctx), p.Work, key, value),
			put(context.WithoutCancel(ctx), p.API, key, value)); err != nil {
			return err
		}
		p.answered[writer].Store(n)
	}
	return nil
}

// numbers returns the values of one of the counters, by writer.
func numbers(counters *[hotWriters]atomic.Int64) (n [hotWriters]int64) {
	for writer := range counters {
		n[writer] = counters[writer].Load()
	}
	return n
}

// TestHotBackup backs up while pairs are written. Each backup has both stores at the same point in time.
func TestHotBackup(t *testing.T) {
	p := &pairs{server: open(t, filepath.Join(t.TempDir(), "data"))}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for writer := range hotWriters {
		writers.Go(func() {
			if err := p.write(ctx, writer); err != nil {
				t.Error(err)
			}
		})
	}
	for range 5 {
		least := numbers(&p.answered)
		var saved bytes.Buffer
		if err := backup.Write(&saved, p.Stores, backup.Options{Version: "v1", Now: moment}); err != nil {
			t.Fatal(err)
		}
		p.check(t, saved.Bytes(), least, numbers(&p.begun))
	}
	stop()
	writers.Wait()
	p.close(t)
}

// check restores a backup and compares it with the pairs acknowledged before it was made and those started afterwards.
func (p *pairs) check(t *testing.T, saved []byte, least, most [hotWriters]int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "restored")
	staged, err := restore(t, path, bytes.NewReader(saved))
	if err != nil {
		t.Fatal(err)
	}
	restored := open(t, path)
	defer restored.close(t)
	total := map[string]int64{}
	for writer := range hotWriters {
		api, work := count(t, restored.API, writer), count(t, restored.Work, writer)
		total[datadir.APIFile] += api
		total[datadir.WorkFile] += work
		if api < least[writer] || work > most[writer] {
			t.Errorf("writer %d: %d objects, %d rows; %d pairs were answered before, %d begun after", writer, api, work, least[writer], most[writer])
		}
		if work != api && work != api+1 {
			t.Errorf("writer %d: %d objects and %d rows, which was never so", writer, api, work)
		}
	}
	for _, store := range staged.Stores {
		// Every write is a revision, the first one is 2.
		if got := total[store.Name] + 1; got != store.Revision {
			t.Errorf("%s: %d writes are there, and it was at revision %d", store.Name, got-1, store.Revision)
		}
	}
}

// count returns the number of keys of a writer, which must be consecutive from the first.
func count(t *testing.T, e *bolt.Engine, writer int) int64 {
	t.Helper()
	prefix := fmt.Sprintf("/pairs/%02d/", writer)
	response, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte(prefix), RangeEnd: []byte(prefix + "~"), KeysOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, kv := range response.Kvs {
		if want := fmt.Sprintf("%s%08d", prefix, i+1); string(kv.Key) != want {
			t.Fatalf("%s is where %s should be", kv.Key, want)
		}
	}
	return int64(len(response.Kvs))
}
