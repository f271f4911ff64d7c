// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"k8s.io/apiserver/pkg/storage/etcd3/testserver"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// programArguments has the test binary run the program with these arguments, one on each line, instead of the tests.
const programArguments = "SLIPSTREAM_TEST_PROGRAM_ARGUMENTS"

func TestMain(m *testing.M) {
	if arguments := os.Getenv(programArguments); arguments != "" {
		os.Exit(runProgram(context.Background(), strings.Split(arguments, "\n")))
	}
	if os.Getenv(hostileLogs) != "" {
		os.Exit(logHostileNames(context.Background()))
	}
	os.Exit(m.Run())
}

// runProgram runs the program and returns its exit code.
func runProgram(ctx context.Context, arguments []string) int {
	command := NewCommand(ctx)
	command.SilenceErrors = true
	command.SetArgs(arguments)
	err := command.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
	}
	return ExitCode(err)
}

// damage changes api.db of a stopped server.
type damage struct {
	name   string
	change func(raw []byte) []byte
	// says is a part of the error.
	says string
}

// usedPages returns the numbers of the used pages of a kind, the highest first.
func usedPages(raw []byte, kind uint16) (pages []int) {
	size := os.Getpagesize()
	for id := len(raw)/size - 1; id > 1; id-- {
		header := raw[id*size:]
		if binary.NativeEndian.Uint64(header) == uint64(id) && binary.NativeEndian.Uint16(header[8:]) == kind &&
			binary.NativeEndian.Uint16(header[10:]) > 0 {
			pages = append(pages, id)
		}
	}
	return pages
}

func damages() []damage {
	const branch, leaf = 1, 2
	each := func(raw []byte, kind uint16, change func(page []byte)) []byte {
		for _, id := range usedPages(raw, kind) {
			change(raw[id*os.Getpagesize():][:os.Getpagesize()])
		}
		return raw
	}
	return []damage{
		{"pages of another kind", func(raw []byte) []byte {
			return each(raw, leaf, func(page []byte) { page[8] ^= 0x40 })
		}, "is neither a branch nor a leaf"},
		{"a tree that refers to itself", func(raw []byte) []byte {
			return each(raw, branch, func(page []byte) { copy(page[24:32], page[:8]) })
		}, "is in use elsewhere"},
		{"pages of which one is in the place of another", func(raw []byte) []byte {
			return each(raw, leaf, func(page []byte) { page[1] ^= 0x20 })
		}, "refers to, has the number"},
		{"a file that ends too soon", func(raw []byte) []byte { return raw[:3*os.Getpagesize()] }, "it was cut off"},
		{"a file without a beginning", func(raw []byte) []byte { clear(raw[:2*os.Getpagesize()]); return raw }, "neither meta page is valid"},
	}
}

// damagedDirectory returns the data directory of a stopped server with a damaged api.db, and a backup from before. raw is
// the content of the damaged file.
func damagedDirectory(t *testing.T, d damage) (path, file string, raw []byte) {
	t.Helper()
	path, file = filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup.tar")
	t.Run("a server", func(t *testing.T) {
		s, _ := serving(t, path)
		for i := range 200 {
			s.put(t, fmt.Sprintf("/registry/%03d", i))
		}
	})
	for _, arguments := range [][]string{{"store", "defrag", "--data-dir=" + path}, {"backup", "--data-dir=" + path, "-o", file}} {
		if code, _, said := execute(t, "", arguments...); code != 0 {
			t.Fatalf("%v: %d, %s", arguments, code, said)
		}
	}
	raw, err := os.ReadFile(filepath.Join(path, datadir.APIFile))
	if err != nil {
		t.Fatal(err)
	}
	raw = d.change(raw)
	if err := os.WriteFile(filepath.Join(path, datadir.APIFile), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, file, raw
}

// TestCommandsOnADamagedStore runs each command on a damaged file: the error names the file, the damage and the next step,
// and the file is not changed. A backup can be restored over it.
func TestCommandsOnADamagedStore(t *testing.T) {
	etcd := testserver.RunEtcd(t, nil).Endpoints()[0]
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			path, file, raw := damagedDirectory(t, d)
			api := filepath.Join(path, datadir.APIFile)
			complains := func(name string, code int, said string) {
				t.Helper()
				if code == 0 || !strings.Contains(said, d.says) || !strings.Contains(said, api) || !strings.Contains(said, "restore a backup") {
					t.Errorf("%s: exit code %d: %s", name, code, said)
				}
			}
			code, out, said := execute(t, "", "store", "check", "--data-dir="+path)
			if code != 1 || !strings.Contains(out, "api.db: ") || !strings.Contains(out, d.says) ||
				!strings.Contains(out, "\nwork.db: sound\n") || !strings.Contains(said, "restore a backup") {
				t.Errorf("store check: exit code %d: %s%s", code, out, said)
			}
			code, _, said = execute(t, "", "store", "defrag", "--data-dir="+path)
			complains("store defrag", code, said)
			code, _, said = execute(t, "", "backup", "--data-dir="+path, "-o", file+".second")
			complains("backup", code, said)
			code, _, said = execute(t, "", "migrate", "--from=bbolt", "--to=etcd3", "--data-dir="+path, "--etcd-servers="+etcd)
			complains("migrate", code, said)
			stores, err := openStores(t.Context(), optionsOn(path).Storage)
			if err == nil {
				err = errors.Join(errors.New("it starts"), stores.close())
			}
			complains("the server", ExitCode(err), err.Error())
			if after, err := os.ReadFile(api); err != nil || !bytes.Equal(after, raw) {
				t.Errorf("the damaged file was written to (%v)", err)
			}

			if code, _, said := execute(t, "", "restore", "--data-dir="+path, file); code != 0 {
				t.Errorf("restore: exit code %d: %s", code, said)
			}
			if code, out, said := execute(t, "", "store", "check", "--data-dir="+path); code != 0 {
				t.Errorf("store check of the restored stores: exit code %d: %s%s", code, out, said)
			}
		})
	}
}

// TestProgramOnADamagedStore runs the program on a damaged file: it ends with an exit code and an error.
func TestProgramOnADamagedStore(t *testing.T) {
	for i, arguments := range []string{"store\ncheck", "store\ndefrag", "backup\n-o\n-"} {
		d := damages()[i]
		path, _, _ := damagedDirectory(t, d)
		program := exec.CommandContext(t.Context(), os.Args[0])
		program.Env = append(os.Environ(), programArguments+"="+arguments+"\n--data-dir="+path)
		said, err := program.CombinedOutput()
		text := string(said)
		if code := program.ProcessState.ExitCode(); code != 1 || !strings.Contains(text, d.says) || !strings.Contains(text, "restore a backup") {
			t.Errorf("%q of %s: exit code %d (%v): %s", arguments, d.name, code, err, text)
		}
		if strings.Contains(text, "goroutine ") || strings.Contains(text, "fatal error") {
			t.Errorf("%q of %s ends with a trace: %s", arguments, d.name, text)
		}
	}
}

// TestCheckOfFlippedRecords flips bits in keys and values without history. The check finds them, because decryption fails.
func TestCheckOfFlippedRecords(t *testing.T) {
	opts := optionsOn(t.TempDir())
	r := openRecords(t, opts)
	for i := range 12 {
		r.create(t, fmt.Sprintf("repo-%02d", i))
		row := table.Row{Key: fmt.Sprintf("row-%02d", i), Value: []byte("x")}
		if err := r.work.Table("outbox").Put(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	stored := map[string][]*mvccpb.KeyValue{}
	for name, engine := range map[string]*bolt.Engine{datadir.APIFile: r.stores.api, datadir.WorkFile: r.stores.work} {
		answer, err := engine.Range(t.Context(), &pb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0")})
		if err == nil {
			_, err = engine.Compact(t.Context(), &pb.CompactionRequest{Revision: engine.Revision()})
		}
		if err != nil {
			t.Fatal(err)
		}
		stored[name] = answer.Kvs
	}
	r.stop()
	check := []string{"store", "check", "--data-dir=" + opts.Storage.DataDir}
	for _, arguments := range [][]string{{"store", "defrag", check[2]}, check} {
		if code, out, said := execute(t, "", arguments...); code != 0 {
			t.Fatalf("%v: %d, %s%s", arguments, code, out, said)
		}
	}
	random := rand.New(rand.NewPCG(17, 7))
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		path := filepath.Join(opts.Storage.DataDir, name)
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, kv := range stored[name] {
			what := kv.Value
			if i%4 == 0 {
				what = kv.Key
			}
			if bytes.Count(sound, kv.Value) != 1 {
				t.Fatalf("the value of %s is %d times in %s", kv.Key, bytes.Count(sound, kv.Value), name)
			}
			at := bytes.LastIndex(sound[:bytes.Index(sound, kv.Value)+len(kv.Value)], what) + random.IntN(len(what))
			raw := bytes.Clone(sound)
			raw[at] ^= 1 << random.IntN(8)
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if code, out, said := execute(t, "", check...); code != 1 || !strings.Contains(out, name+": damaged") {
				t.Errorf("a bit of %q is flipped at %d: exit code %d: %s%s", kv.Key, at, code, out, said)
			}
		}
		if err := os.WriteFile(path, sound, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(opts.Storage.DataDir, encryption.FileName)); err != nil {
		t.Fatal(err)
	}
	if code, out, said := execute(t, "", check...); code != 0 ||
		!strings.Contains(said, "the values were not decrypted, because there is no key") {
		t.Errorf("without a key: exit code %d: %s%s", code, out, said)
	}
	if _, err := (encryption.Folder{Path: opts.Storage.DataDir}).Read(t.Context()); !errors.Is(err, encryption.ErrAbsent) {
		t.Errorf("the check created a key: %v", err)
	}
}
