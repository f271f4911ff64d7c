// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// TestReleasePages writes and reads a file of some megabytes, and reads it again after its pages were released.
func TestReleasePages(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	value := strings.Repeat("x", 1<<20)
	read := func() {
		t.Helper()
		for i := range 8 {
			response, err := e.Range(t.Context(), &pb.RangeRequest{Key: fmt.Append(nil, "/", i)})
			if err != nil || len(response.Kvs) != 1 || string(response.Kvs[0].Value) != value {
				t.Fatalf("key %d is not what was written: %v", i, err)
			}
		}
	}
	for i := range 8 {
		set(t, e, fmt.Sprint("/", i), value)
	}
	read()
	before := mapped(t, e.Path())
	if before < 8<<10 {
		t.Fatalf("%d KiB of the file are in memory, want all values", before)
	}
	if err := e.ReleasePages(); err != nil {
		t.Fatal(err)
	}
	if after := mapped(t, e.Path()); after > before/8 {
		t.Errorf("%d KiB of the file are in memory, %d before", after, before)
	}
	read()
}

// mapped returns the KiB of a file that are in the memory of the process.
func mapped(t *testing.T, path string) (kibibytes int) {
	t.Helper()
	content, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	in := false
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		switch {
		case strings.Contains(fields[0], "-"):
			in = fields[len(fields)-1] == path
		case in && fields[0] == "Rss:":
			n := 0
			if _, err := fmt.Sscan(fields[1], &n); err != nil {
				t.Fatal(err)
			}
			kibibytes += n
		}
	}
	return kibibytes
}
