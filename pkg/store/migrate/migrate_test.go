// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiserver/pkg/storage/etcd3/testserver"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/migrate"
	"github.com/configbutler/slipstream/test/testkit"
)

// prefixes returns the server's prefixes.
func prefixes() migrate.Prefixes {
	return migrate.Prefixes{Objects: "/registry", Work: "/registry-work"}
}

// padding is the key for padding etcd.
const padding = "/registry-padding"

// runEtcd starts etcd in the test process.
func runEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	client := testserver.RunEtcd(t, nil)
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return client.Client
}

// directory returns a data directory of the test.
func directory(t *testing.T) *datadir.Dir {
	t.Helper()
	dir, err := datadir.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// withFile opens a file of a directory during a function call.
func withFile(t *testing.T, dir *datadir.Dir, name string, use func(engine *bolt.Engine, client *clientv3.Client)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	engine, err := bolt.Open(ctx, dir.File(name), bolt.Options{CompactionInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	use(engine, bolt.NewClient(ctx, engine).Client)
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, client *clientv3.Client, key, value string, options ...clientv3.OpOption) int64 {
	t.Helper()
	response, err := client.Put(t.Context(), key, value, options...)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// populate fills both files of a directory with random content: values of all sizes, zeros and other bytes in keys,
// changes, deletions, and leases that outlive the test.
func populate(t *testing.T, dir *datadir.Dir, random *rand.Rand, keys int) {
	t.Helper()
	for name, prefix := range map[string]string{datadir.APIFile: "/registry/", datadir.WorkFile: "/registry-work/"} {
		withFile(t, dir, name, func(_ *bolt.Engine, client *clientv3.Client) {
			lease, err := client.Grant(t.Context(), 3600)
			if err != nil {
				t.Fatal(err)
			}
			for i := range keys {
				key := fmt.Sprintf("%s%d/%c%d", prefix, random.IntN(5), random.IntN(256), i)
				var options []clientv3.OpOption
				if random.IntN(10) == 0 {
					options = append(options, clientv3.WithLease(lease.ID))
				}
				put(t, client, key, randomValue(random, 2000))
				put(t, client, key, randomValue(random, 2000), options...)
				if random.IntN(5) == 0 {
					if _, err := client.Delete(t.Context(), key); err != nil {
						t.Fatal(err)
					}
				}
			}
			put(t, client, prefix+"large", randomValue(random, 1)+string(bytes.Repeat([]byte{0xff}, 1_400_000)))
			put(t, client, prefix+"empty", "")
		})
	}
}

func randomValue(random *rand.Rand, longest int) string {
	value := make([]byte, random.IntN(longest+1))
	for i := range value {
		value[i] = byte(random.Uint32())
	}
	return string(value)
}

// contentOf returns the keys with a prefix with their values, and whether they have a lease.
func contentOf(t *testing.T, client *clientv3.Client, prefix string) map[string]string {
	t.Helper()
	response, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, kv := range response.Kvs {
		content[string(kv.Key)] = fmt.Sprintf("%t %s", kv.Lease != 0, kv.Value)
	}
	return content
}

// contentOfFiles returns the content of both files of a directory.
func contentOfFiles(t *testing.T, dir *datadir.Dir) map[string]string {
	t.Helper()
	content := map[string]string{}
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		withFile(t, dir, name, func(_ *bolt.Engine, client *clientv3.Client) {
			maps.Copy(content, contentOf(t, client, ""))
		})
	}
	return content
}

// revisionOf returns the revision of a directory's objects.
func revisionOf(t *testing.T, dir *datadir.Dir) (revision int64) {
	t.Helper()
	withFile(t, dir, datadir.APIFile, func(engine *bolt.Engine, _ *clientv3.Client) { revision = engine.Revision() })
	return revision
}

// sameContent fails if two contents differ, and reports where.
func sameContent(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, found := got[key]; !found || value != want[key] {
			t.Fatalf("%q differs or is missing", key)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d keys, want %d", len(got), len(want))
	}
}

// behind fails unless a watch from a revision fails as compacted.
func behind(t *testing.T, client *clientv3.Client, revision int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	response := <-client.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	if response.CompactRevision <= revision {
		t.Errorf("a watch from revision %d on got %+v", revision, response)
	}
}

func TestRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source, back := directory(t), directory(t)
	populate(t, source, rand.New(rand.NewPCG(seed, 0)), 300)
	want := contentOfFiles(t, source)
	handedOut := revisionOf(t, source)
	etcd := runEtcd(t)

	result, err := migrate.FromDirectory(t.Context(), source, etcd, prefixes(), migrate.Options{Pad: padding})
	if err != nil {
		t.Fatal(err)
	}
	inEtcd := contentOf(t, etcd, "/registry")
	sameContent(t, inEtcd, want)
	sameContent(t, contentOfFiles(t, source), want)
	if keys := result.Sections[0].Keys + result.Sections[1].Keys; keys != int64(len(want)) {
		t.Errorf("%d keys are reported, there are %d", keys, len(want))
	}
	newerThan(t, etcd, handedOut)
	behind(t, etcd, handedOut)

	// etcd is written to before the migration back to files.
	put(t, etcd, "/registry/a/new", "x")
	put(t, etcd, "/elsewhere", "x")
	handedOut = put(t, etcd, "/registry/a/new", "y")
	want["/registry/a/new"] = "false y"
	_, aside, err := migrate.IntoDirectory(t.Context(), back, etcd, prefixes(), migrate.Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	sameContent(t, contentOfFiles(t, back), want)
	withFile(t, back, datadir.APIFile, func(_ *bolt.Engine, client *clientv3.Client) {
		newerThan(t, client, handedOut)
		behind(t, client, handedOut)
	})
	if aside == "" {
		t.Error("no folder for what was replaced")
	}
}

// newerThan fails if a key has a resource version that was handed out before.
func newerThan(t *testing.T, client *clientv3.Client, handedOut int64) {
	t.Helper()
	response, err := client.Get(t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range response.Kvs {
		if kv.ModRevision <= handedOut {
			t.Fatalf("%q has revision %d, and revisions up to %d were handed out before", kv.Key, kv.ModRevision, handedOut)
		}
	}
}

// TestBackOverOldFiles checks that files that had been in use before continue above all revisions that they handed out.
func TestBackOverOldFiles(t *testing.T) {
	dir, etcd := directory(t), runEtcd(t)
	withFile(t, dir, datadir.APIFile, func(engine *bolt.Engine, client *clientv3.Client) {
		put(t, client, "/registry/old", "x")
		if err := engine.Advance(t.Context(), 70_000); err != nil {
			t.Fatal(err)
		}
	})
	put(t, etcd, "/registry/new", "x")
	into := func(o migrate.Options) (string, error) {
		_, aside, err := migrate.IntoDirectory(t.Context(), dir, etcd, prefixes(), o, time.Now())
		return aside, err
	}
	before := contentOfFiles(t, dir)
	if _, err := into(migrate.Options{}); !errors.Is(err, migrate.ErrTargetNotEmpty) {
		t.Fatalf("over files that hold something: %v", err)
	}
	sameContent(t, contentOfFiles(t, dir), before)
	aside, err := into(migrate.Options{Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	sameContent(t, contentOfFiles(t, dir), map[string]string{"/registry/new": "false x"})
	withFile(t, dir, datadir.APIFile, func(_ *bolt.Engine, client *clientv3.Client) { newerThan(t, client, 70_000) })
	old, err := bolt.Inspect(t.Context(), aside+"/"+datadir.APIFile)
	if err != nil || old.Revision != 70_000 {
		t.Errorf("the old file: %+v, %v", old, err)
	}
}

// TestLeases checks that leases keep their remaining time, and that expired ones are not restored.
func TestLeases(t *testing.T) {
	source, etcd := directory(t), runEtcd(t)
	withFile(t, source, datadir.APIFile, func(_ *bolt.Engine, client *clientv3.Client) {
		long, err := client.Grant(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		short, err := client.Grant(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		put(t, client, "/registry/long/1", "x", clientv3.WithLease(long.ID))
		put(t, client, "/registry/long/2", "x", clientv3.WithLease(long.ID))
		put(t, client, "/registry/short", "x", clientv3.WithLease(short.ID))
		put(t, client, "/registry/for-good", "x")
	})
	result, err := migrate.FromDirectory(t.Context(), source, etcd, prefixes(), migrate.Options{Pad: padding})
	if err != nil {
		t.Fatal(err)
	}
	leases := map[string]int64{}
	response, err := etcd.Get(t.Context(), "/registry/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range response.Kvs {
		leases[string(kv.Key)] = kv.Lease
	}
	if leases["/registry/for-good"] != 0 || leases["/registry/long/1"] == 0 || leases["/registry/long/1"] != leases["/registry/long/2"] {
		t.Errorf("leases %v", leases)
	}
	left, err := etcd.TimeToLive(t.Context(), clientv3.LeaseID(leases["/registry/long/1"]))
	if err != nil || left.TTL < 900 || left.TTL > 1000 {
		t.Errorf("%+v is left, %v", left, err)
	}
	if _, there := leases["/registry/short"]; there == (result.Sections[0].Expired == 1) {
		t.Errorf("the key of the short lease is there: %t, expired %d", there, result.Sections[0].Expired)
	}
}

// withKV returns a client with another implementation of KV.
func withKV(client *clientv3.Client, kv clientv3.KV) *clientv3.Client {
	return &clientv3.Client{KV: kv, Lease: client.Lease, Watcher: client.Watcher}
}

// TestInterrupted checks that a migration that is interrupted anywhere is completed by the next one.
func TestInterrupted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	source, etcd := directory(t), runEtcd(t)
	populate(t, source, random, 400)
	want := contentOfFiles(t, source)
	interruptions := 0
	for ; ; interruptions++ {
		process := &testkit.Process{}
		process.Start(1+random.IntN(2), nil)
		process.LoseResponse(random.IntN(2) == 0)
		kv := bolttest.WithWrites(etcd.KV, func(_ context.Context, write bolttest.Write) error { return process.Write(write.Commit) })
		_, err := migrate.FromDirectory(t.Context(), source, withKV(etcd, kv), prefixes(), migrate.Options{Pad: padding})
		if err == nil {
			break
		}
		if !errors.Is(err, testkit.ErrDead) {
			t.Fatal(err)
		}
		if interruptions > 200 {
			t.Fatal("the migration is never complete")
		}
	}
	t.Logf("%d interruptions", interruptions)
	if interruptions == 0 {
		t.Error("nothing was interrupted")
	}
	sameContent(t, contentOf(t, etcd, "/registry"), want)

	// One that is complete is found to be.
	result, err := migrate.FromDirectory(t.Context(), source, etcd, prefixes(), migrate.Options{})
	if err != nil || result.Sections[0].Copied+result.Sections[1].Copied != 0 {
		t.Errorf("again: %+v, %v", result, err)
	}
}

// TestPaddingOfAnInterruptedMigration checks that the key that raises the revision is deleted also if an earlier migration raised it.
func TestPaddingOfAnInterruptedMigration(t *testing.T) {
	source, etcd := directory(t), runEtcd(t)
	populate(t, source, rand.New(rand.NewPCG(1, 0)), 20)
	for range 2 {
		if _, err := migrate.FromDirectory(t.Context(), source, etcd, prefixes(), migrate.Options{Pad: padding}); err != nil {
			t.Fatal(err)
		}
		if left := contentOf(t, etcd, padding); len(left) > 0 {
			t.Fatalf("%d keys are left", len(left))
		}
		put(t, etcd, padding, "")
	}
}

// TestInterruptedIntoFiles checks that files are created completely or not at all.
func TestInterruptedIntoFiles(t *testing.T) {
	dir, etcd := directory(t), runEtcd(t)
	for i := range 1000 {
		put(t, etcd, fmt.Sprintf("/registry/%d", i), "x")
	}
	for reads := range 12 {
		faulty := withKV(etcd, &failingReads{KV: etcd.KV, left: reads})
		_, _, err := migrate.IntoDirectory(t.Context(), dir, faulty, prefixes(), migrate.Options{}, time.Now())
		if !errors.Is(err, errFault) {
			t.Fatalf("after %d reads: %v", reads, err)
		}
		if len(contentOfFiles(t, dir)) > 0 {
			t.Fatalf("after %d reads there is something", reads)
		}
	}
	if _, _, err := migrate.IntoDirectory(t.Context(), dir, etcd, prefixes(), migrate.Options{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	sameContent(t, contentOfFiles(t, dir), contentOf(t, etcd, "/registry/"))
}

var errFault = errors.New("fault")

// failingReads fails after some reads.
type failingReads struct {
	clientv3.KV
	left int
}

func (f *failingReads) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if f.left--; f.left < 0 {
		return nil, errFault
	}
	return f.KV.Get(ctx, key, options...)
}

// meddlingKV calls a function once, at the first page of keys that is read.
type meddlingKV struct {
	clientv3.KV
	meddle func()
}

func (m *meddlingKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := m.KV.Get(ctx, key, options...)
	if err == nil && len(response.Kvs) > 0 && m.meddle != nil {
		m.meddle()
		m.meddle = nil
	}
	return response, err
}

// TestSourceChanges checks that any write of a running server to etcd is detected.
func TestSourceChanges(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, etcd *clientv3.Client){
		"a key is put":         func(t *testing.T, etcd *clientv3.Client) { put(t, etcd, "/registry/a", "y") },
		"working state is put": func(t *testing.T, etcd *clientv3.Client) { put(t, etcd, "/registry-work/b", "y") },
		"a key comes and goes": func(t *testing.T, etcd *clientv3.Client) {
			put(t, etcd, "/registry/c", "y")
			remove(t, etcd, "/registry/c")
		},
		"a key is deleted": func(t *testing.T, etcd *clientv3.Client) { remove(t, etcd, "/registry/a") },
	} {
		t.Run(name, func(t *testing.T) {
			dir, etcd := directory(t), runEtcd(t)
			put(t, etcd, "/registry/a", "x")
			meddled := withKV(etcd, &meddlingKV{KV: etcd.KV, meddle: func() { change(t, etcd) }})
			_, _, err := migrate.IntoDirectory(t.Context(), dir, meddled, prefixes(), migrate.Options{}, time.Now())
			if !errors.Is(err, migrate.ErrSourceChanged) {
				t.Errorf("error %v", err)
			}
			if len(contentOfFiles(t, dir)) > 0 {
				t.Error("there is something in the files")
			}
		})
	}
	t.Run("others and ends of leases do not matter", func(t *testing.T) {
		dir, etcd := directory(t), runEtcd(t)
		lease, err := etcd.Grant(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		put(t, etcd, "/registry/a", "x")
		put(t, etcd, "/registry/leased", "x", clientv3.WithLease(lease.ID))
		meddled := withKV(etcd, &meddlingKV{KV: etcd.KV, meddle: func() {
			put(t, etcd, "/elsewhere", "x")
			if _, err := etcd.Revoke(t.Context(), lease.ID); err != nil {
				t.Error(err)
			}
		}})
		result, _, err := migrate.IntoDirectory(t.Context(), dir, meddled, prefixes(), migrate.Options{}, time.Now())
		if err != nil || result.Sections[0].Expired != 1 {
			t.Errorf("%+v, error %v", result, err)
		}
		sameContent(t, contentOfFiles(t, dir), map[string]string{"/registry/a": "false x"})
	})
}

func remove(t *testing.T, client *clientv3.Client, key string) {
	t.Helper()
	if _, err := client.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		source  func(t *testing.T, api *clientv3.Client)
		target  func(t *testing.T, etcd *clientv3.Client)
		options migrate.Options
		want    error
	}{
		"an empty source": {
			target: func(*testing.T, *clientv3.Client) {}, source: func(*testing.T, *clientv3.Client) {}, want: migrate.ErrEmptySource,
		},
		"keys elsewhere": {source: func(t *testing.T, api *clientv3.Client) { put(t, api, "/other/a", "x") }, want: migrate.ErrOtherKeys},
		"another key": {
			target: func(t *testing.T, etcd *clientv3.Client) { put(t, etcd, "/registry/z", "x") }, want: migrate.ErrTargetNotEmpty,
		},
		"another value": {
			target: func(t *testing.T, etcd *clientv3.Client) { put(t, etcd, "/registry/a", "y") }, want: migrate.ErrTargetNotEmpty,
		},
		"another work row": {
			target: func(t *testing.T, etcd *clientv3.Client) { put(t, etcd, "/registry-work/z", "x") }, want: migrate.ErrTargetNotEmpty,
		},
		"a low revision": {target: func(*testing.T, *clientv3.Client) {}, want: migrate.ErrRevisionTooLow},
		"a part is refused for its revision alone": {
			target: func(t *testing.T, etcd *clientv3.Client) { put(t, etcd, "/registry/a", "x") }, want: migrate.ErrRevisionTooLow,
		},
	} {
		t.Run(name, func(t *testing.T) {
			source, etcd := directory(t), runEtcd(t)
			withFile(t, source, datadir.APIFile, func(engine *bolt.Engine, api *clientv3.Client) {
				if test.source == nil {
					put(t, api, "/registry/a", "x")
				} else {
					test.source(t, api)
				}
				if err := engine.Advance(t.Context(), 100); err != nil {
					t.Fatal(err)
				}
			})
			if test.target != nil {
				test.target(t, etcd)
			}
			before := contentOf(t, etcd, "")
			if _, err := migrate.FromDirectory(t.Context(), source, etcd, prefixes(), test.options); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			sameContent(t, contentOf(t, etcd, ""), before)
		})
	}
}

// TestReplace checks that only the content to be replaced is removed.
func TestReplace(t *testing.T) {
	source, etcd := directory(t), runEtcd(t)
	withFile(t, source, datadir.APIFile, func(_ *bolt.Engine, api *clientv3.Client) { put(t, api, "/registry/a", "x") })
	for i := range 3000 {
		put(t, etcd, fmt.Sprintf("/registry/old/%d", i), "x")
	}
	put(t, etcd, "/registryx", "kept")
	if _, err := migrate.FromDirectory(t.Context(), source, etcd, prefixes(), migrate.Options{Replace: true}); err != nil {
		t.Fatal(err)
	}
	sameContent(t, contentOf(t, etcd, ""), map[string]string{"/registry/a": "false x", "/registryx": "false kept"})
}

// TestCopyFromLongAgo checks that keys that an earlier migration left in etcd get new revisions.
func TestCopyFromLongAgo(t *testing.T) {
	source, etcd := directory(t), runEtcd(t)
	withFile(t, source, datadir.APIFile, func(engine *bolt.Engine, api *clientv3.Client) {
		if err := engine.Advance(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		put(t, api, "/registry/a", "x")
	})
	put(t, etcd, "/registry/a", "x")
	for range 200 {
		put(t, etcd, "/elsewhere", "x")
	}
	result, err := migrate.FromDirectory(t.Context(), source, etcd, prefixes(), migrate.Options{})
	if err != nil || result.Sections[0].Copied != 1 {
		t.Errorf("%+v, error %v", result, err)
	}
	newerThan(t, etcd, 101)
}

// TestPadding checks that padding raises the revision and leaves no key behind.
func TestPadding(t *testing.T) {
	const revisions = 20_000
	source, etcd := directory(t), runEtcd(t)
	withFile(t, source, datadir.APIFile, func(engine *bolt.Engine, api *clientv3.Client) {
		if err := engine.Advance(t.Context(), revisions); err != nil {
			t.Fatal(err)
		}
		put(t, api, "/registry/a", "x")
	})
	begin := time.Now()
	if _, err := migrate.FromDirectory(t.Context(), source, etcd, prefixes(), migrate.Options{Pad: padding}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.0f revisions a second", revisions/time.Since(begin).Seconds())
	newerThan(t, etcd, revisions)
	sameContent(t, contentOf(t, etcd, ""), map[string]string{"/registry/a": "false x"})
}
