// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

func encodedEntry(mode, name string, fill byte) string {
	return mode + " " + name + "\x00" + strings.Repeat(string(rune(fill)), hashSize)
}

func TestDecodeTree(t *testing.T) {
	for name, test := range map[string]struct {
		encoded string
		entries int
		fails   bool
	}{
		"empty":             {"", 0, false},
		"Git's order":       {encodedEntry("100644", "a.b", 1) + encodedEntry("40000", "a", 1) + encodedEntry("100644", "a0", 1), 3, false},
		"zero-padded mode":  {encodedEntry("040000", "a", 1), 1, false},
		"hash of zeros":     {encodedEntry("100644", "a", 0) + encodedEntry("100644", "b", 0), 2, false},
		"out of order":      {encodedEntry("100644", "b", 1) + encodedEntry("100644", "a", 1), 0, true},
		"twice":             {encodedEntry("100644", "a", 1) + encodedEntry("100644", "a", 2), 0, true},
		"directory as file": {encodedEntry("40000", "a", 1) + encodedEntry("100644", "a.b", 1), 0, true},
		"no name":           {encodedEntry("100644", "", 1), 0, true},
		"slash":             {encodedEntry("100644", "a/b", 1), 0, true},
		"dot dot":           {encodedEntry("40000", "..", 1), 0, true},
		"empty mode":        {encodedEntry("", "a", 1), 0, true},
		"mode zero":         {encodedEntry("0", "a", 1), 0, true},
		"mode is not octal": {encodedEntry("100648", "a", 1), 0, true},
		"mode is too large": {encodedEntry("77777777777777", "a", 1), 0, true},
		"no NUL byte":       {"100644 a", 0, true},
		"truncated hash":    {encodedEntry("100644", "a", 1)[:20], 0, true},
		"trailing byte":     {encodedEntry("100644", "a", 1) + "1", 0, true},
		"NUL in the mode":   {"100\x00644 a" + strings.Repeat("x", hashSize), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := decodeTree([]byte(test.encoded))
			if test.fails {
				if !errors.Is(err, errMalformedTree) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || len(d.entries) != test.entries {
				t.Fatalf("entries %v, error %v", d, err)
			}
			if got := string(encodeTree(d)); (got == test.encoded) == d.irregular {
				t.Errorf("encoded as %q, irregular %v", got, d.irregular)
			}
		})
	}
}

// FuzzDecodeTree checks that decoded entries are sorted, and that they encode to the same bytes unless irregular is set.
func FuzzDecodeTree(f *testing.F) {
	f.Add([]byte(encodedEntry("100644", "a.b", 1) + encodedEntry("40000", "a", 1)))
	f.Add([]byte(encodedEntry("040000", "a", 0)))
	f.Add([]byte("100644 a"))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		d, err := decodeTree(encoded)
		if err != nil {
			return
		}
		if again := encodeTree(d); !d.irregular && !bytes.Equal(again, encoded) {
			t.Errorf("%q was encoded as %q", encoded, again)
		}
		for i := range d.entries {
			e := &d.entries[i]
			if at, found := d.search(e.name, e.isDirectory()); !found || at != i {
				t.Errorf("entry %d, %q: search returned %d, %v", i, e.name, at, found)
			}
		}
	})
}

// directoryOf creates a directory from pairs of bytes: the first selects name and kind of an entry, the second its hash.
func directoryOf(picks []byte) *directory {
	d := &directory{}
	for len(picks) >= 2 {
		name := strings.Repeat("name-of-a-file-", int(picks[0]%7)+1) + fmt.Sprint(picks[0]/7)
		mode := []filemode.FileMode{filemode.Regular, filemode.Dir, filemode.Executable}[picks[1]%3]
		if at, found := d.search(name, mode == filemode.Dir); !found {
			d.insert(at, entry{name: name, mode: mode, hash: Hash{picks[1]}})
		}
		picks = picks[2:]
	}
	return d
}

// FuzzTreeDelta checks that another implementation reconstructs a tree from the delta between any two directories.
func FuzzTreeDelta(f *testing.F) {
	f.Add([]byte{}, []byte{1, 2})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, []byte{1, 2, 3, 9, 7, 8, 20, 1})
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz"), []byte("abcdefghmnopqrstzzyzuvwxyz"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		base, target := directoryOf(before), directoryOf(after)
		if len(base.entries) == 0 {
			return // The other implementation does not support an empty base, which is never used.
		}
		delta := appendTreeDelta(nil, base, target)
		got, err := packfile.PatchDelta(encodeTree(base), delta)
		if err != nil || !bytes.Equal(got, encodeTree(target)) {
			t.Errorf("delta %x: got %q, error %v; want %q", delta, got, err, encodeTree(target))
		}
	})
}

func TestTreeDeltaIsSmall(t *testing.T) {
	base := &directory{}
	for i := range 10000 {
		base.insert(i, entry{name: fmt.Sprintf("%05d.yaml", i), mode: filemode.Regular})
	}
	target := base.clone()
	for i := 0; i < 10000; i += 1000 {
		target.entries[i].hash = Hash{1}
	}
	delta := appendTreeDelta(nil, base, target)
	got, err := packfile.PatchDelta(encodeTree(base), delta)
	if err != nil || !bytes.Equal(got, encodeTree(target)) {
		t.Fatalf("patched tree differs: %v", err)
	}
	if len(delta) > 10*32+16 {
		t.Errorf("delta of ten changed hashes has %d bytes", len(delta))
	}
}

// FuzzReadPack checks that reading an arbitrary pack returns an error or trees that match their hashes.
func FuzzReadPack(f *testing.F) {
	p, err := newPack(nil, false)
	if err != nil {
		f.Fatal(err)
	}
	base := directoryOf(bytes.Repeat([]byte{9, 3, 20, 6, 77, 9, 130, 0, 201, 5, 250, 7, 8, 8, 99, 1, 44, 2, 61, 4}, 1))
	base.hash = objectHash(plumbing.TreeObject, encodeTree(base))
	_ = p.add(plumbing.TreeObject, base.hash, encodeTree(base))
	_ = p.add(plumbing.BlobObject, BlobHash([]byte("x")), []byte("x"))
	f.Add(p.finish())
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, pack []byte) {
		budget := (&Remote{Limits: Limits{Memory: 4 << 20, Transfer: 64 << 20}}).newBudget()
		trees := newTreeCollector(false)
		if err := readPack(t.Context(), bytes.NewReader(pack), 1<<20, budget, trees); err != nil {
			return
		}
		size := int64(0)
		for hash, content := range trees.found.trees {
			if size += int64(len(content)); objectHash(plumbing.TreeObject, content) != hash {
				t.Errorf("tree %s has content %q", hash, content)
			}
		}
		if size > budget.held {
			t.Errorf("trees of %d bytes are in memory, the budget has %d", size, budget.held)
		}
	})
}

// FuzzResponses checks that reading an arbitrary response of a server returns an error or stays within the memory budget.
func FuzzResponses(f *testing.F) {
	p, err := newPack(nil, false)
	if err != nil {
		f.Fatal(err)
	}
	_ = p.add(plumbing.BlobObject, BlobHash([]byte("x")), []byte("x"))
	packet := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	f.Add([]byte(packet("# service=git-upload-pack\n") + "0000" + packet(strings.Repeat("1", 40)+" refs/heads/main\x00shallow\n") + "0000"))
	f.Add([]byte(packet("shallow "+strings.Repeat("1", 40)) + "0000" + packet("NAK\n") + packet("\x01"+string(p.finish())) + "0000"))
	f.Add([]byte(packet("\x02a hook") + packet("\x01"+packet("unpack ok\n")+packet("ok refs/heads/main\n")+"0000") + "0000"))
	f.Fuzz(func(t *testing.T, response []byte) {
		limits := Limits{Memory: 1 << 20, Transfer: 16 << 20}
		_, _ = readAdvertisement(bytes.NewReader(response), "refs/heads/main")
		req := packp.NewUploadRequest()
		req.Depth = packp.DepthCommits(1)
		_ = req.Capabilities.Set(capability.Sideband64k)
		finder, err := newBlobFinder([]Hash{BlobHash([]byte("x"))})
		if err != nil {
			t.Fatal(err)
		}
		for _, visitor := range []packVisitor{newTreeCollector(false), newTreeCollector(true), finder} {
			budget := (&Remote{Limits: limits}).newBudget()
			_ = readFetched(t.Context(), bufio.NewReader(bytes.NewReader(response)), budget, req, want{visitor: visitor})
			if budget.held < 0 || budget.held > limits.Memory {
				t.Errorf("budget holds %d bytes", budget.held)
			}
		}
		pushing := packp.NewReferenceUpdateRequest()
		_ = pushing.Capabilities.Set(capability.Sideband64k)
		if _, progress, err := readReport(bufio.NewReader(bytes.NewReader(response)), pushing); err == nil && len(progress) > maxMessage {
			t.Errorf("progress has %d bytes", len(progress))
		}
	})
}

// TestAcknowledgements tests responses of servers with and without multi_ack, and repeated acknowledgements.
func TestAcknowledgements(t *testing.T) {
	hash := strings.Repeat("1", 40)
	packet := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for name, test := range map[string]struct {
		response string
		want     string
		kind     Kind
	}{
		"nothing in common": {packet("NAK\n") + packet("\x01PACK"), packet("\x01PACK"), ""},
		"in common":         {packet("ACK "+hash+"\n") + "PACK\x00\x00\x00\x02", "PACK\x00\x00\x00\x02", ""},
		"repeated ACK":      {packet("ACK "+hash+"\n") + packet("ACK "+hash+"\n") + "PACK\x00\x00\x00\x02", "PACK\x00\x00\x00\x02", ""},
		"multi_ack_detailed": {
			packet("ACK "+hash+" common\n") + packet("ACK "+hash+" ready\n") + packet("NAK\n") + packet("ACK "+hash+"\n") + "PACK\x00\x00\x00\x02",
			"PACK\x00\x00\x00\x02", "",
		},
		"error":     {packet("ERR upload-pack: not our ref\n"), "", Rejected},
		"truncated": {packet("NAK\n"), "", Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			response := bufio.NewReader(strings.NewReader(test.response))
			err := skipAcknowledgements(response)
			if (err != nil || test.kind != "") && kindOf(err) != test.kind {
				t.Fatalf("error %v, want %s", err, test.kind)
			}
			if rest, _ := io.ReadAll(response); string(rest) != test.want {
				t.Errorf("remaining data = %q, want %q", rest, test.want)
			}
		})
	}
}

func TestReadInvalidPack(t *testing.T) {
	p, err := newPack(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.add(plumbing.BlobObject, BlobHash([]byte("x")), []byte("x"))
	whole := p.finish()
	read := func(pack []byte, limit int64) error {
		return readPack(t.Context(), bytes.NewReader(pack), limit, (&Remote{}).newBudget(), newTreeCollector(false))
	}
	if err := read(whole, int64(len(whole)-1)); !errors.Is(err, errTooLarge) {
		t.Errorf("error %v, want %v", err, errTooLarge)
	}
	if err := read(whole[:len(whole)-4], math.MaxInt64); kindOf(err) != Unreachable {
		t.Errorf("truncated pack: %v", err)
	}
	whole[len(whole)-1]++
	if err := read(whole, math.MaxInt64); kindOf(err) != Protocol {
		t.Errorf("wrong checksum: %v", err)
	}
}

// TestTreeBomb loads a few trees that represent more files than fit into memory.
func TestTreeBomb(t *testing.T) {
	trees := map[Hash][]byte{}
	level := &directory{entries: []entry{{name: "file", mode: filemode.Regular}}}
	for range 12 {
		encoded := encodeTree(level)
		hash := objectHash(plumbing.TreeObject, encoded)
		trees[hash] = encoded
		level = &directory{}
		for i := range 10 {
			level.entries = append(level.entries, entry{name: fmt.Sprint(i), mode: filemode.Dir, hash: hash})
		}
	}
	encoded := encodeTree(level)
	root := objectHash(plumbing.TreeObject, encoded)
	trees[root] = encoded
	commit := fmt.Appendf(nil, "tree %s\n\n", root)
	tip := objectHash(plumbing.CommitObject, commit)
	budget := (&Remote{}).newBudget()
	_, err := loadCommit(t.Context(), budget, tip, objects{trees: trees, commits: map[Hash][]byte{tip: commit}}, nil, nil)
	if kindOf(err) != TooLarge {
		t.Errorf("error %v", err)
	}
}

// TestBudgetOfKnownTrees loads a tree again when all its directories are known. It must use as much of the budget.
func TestBudgetOfKnownTrees(t *testing.T) {
	file := encodeTree(&directory{entries: []entry{{name: "file", mode: filemode.Regular}}})
	leaf := objectHash(plumbing.TreeObject, file)
	encoded := encodeTree(&directory{
		entries: []entry{{name: "a", mode: filemode.Dir, hash: leaf}, {name: "b", mode: filemode.Dir, hash: leaf}},
	})
	root := objectHash(plumbing.TreeObject, encoded)
	commit := fmt.Appendf(nil, "tree %s\n\n", root)
	tip := objectHash(plumbing.CommitObject, commit)
	fetched := objects{trees: map[Hash][]byte{leaf: file, root: encoded}, commits: map[Hash][]byte{tip: commit}}
	first, again := (&Remote{}).newBudget(), (&Remote{}).newBudget()
	before, err := loadCommit(t.Context(), first, tip, fetched, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loadCommit(t.Context(), again, tip, fetched, nil, before); err != nil {
		t.Fatal(err)
	}
	if first.held == 0 || again.held != first.held {
		t.Errorf("first load holds %d bytes, second load %d", first.held, again.held)
	}
}
