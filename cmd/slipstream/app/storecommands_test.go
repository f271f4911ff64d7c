// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/cmd/slipstream/app"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// execute runs a command line and returns what it printed and its exit code.
func execute(t *testing.T, arguments ...string) (stdout string, code int, err error) {
	t.Helper()
	command := app.NewCommand(t.Context())
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(t.Output())
	command.SetArgs(arguments)
	command.SilenceErrors = true
	err = command.ExecuteContext(t.Context())
	return out.String(), app.ExitCode(err), err
}

// stopped returns the data directory of a stopped server, with a key in each file.
func stopped(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		engine, err := bolt.Open(t.Context(), filepath.Join(folder, name), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.Put(t.Context(), &pb.PutRequest{Key: []byte("/registry/a"), Value: []byte("x")})
		if err := errors.Join(err, engine.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestStoreCommands(t *testing.T) {
	folder := stopped(t)
	out, code, err := execute(t, "store", "check", "--data-dir", folder)
	if code != 0 || out != "api.db: sound\nwork.db: sound\n" {
		t.Errorf("check: %d, %v: %q", code, err, out)
	}
	out, code, err = execute(t, "store", "defrag", "--data-dir", folder)
	if code != 0 || strings.Count(out, "bytes before") != 2 {
		t.Errorf("defrag: %d, %v: %q", code, err, out)
	}

	db, err := bbolt.Open(filepath.Join(folder, datadir.WorkFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("counts")).Put([]byte("/registry/"), binary.BigEndian.AppendUint64(nil, 7))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	out, code, err = execute(t, "store", "check", "--data-dir", folder)
	want := "api.db: sound\n" + `work.db: counts "/registry/": counts 7 keys, and there are 1` + "\nwork.db: damaged, 1 findings\n"
	if code != 1 || out != want {
		t.Errorf("check of a damaged store: %d, %v: %q", code, err, out)
	}

	work := filepath.Join(folder, datadir.WorkFile)
	if err := errors.Join(os.Rename(work, filepath.Join(folder, datadir.APIFile)), os.Mkdir(work, 0o700)); err != nil {
		t.Fatal(err)
	}
	out, code, err = execute(t, "store", "check", "--data-dir", folder)
	want = `api.db: counts "/registry/": counts 7 keys, and there are 1` + "\napi.db: damaged, 1 findings\n"
	if code != 2 || out != want {
		t.Errorf("check that fails after a damaged store: %d, %v: %q", code, err, out)
	}

	dir, err := datadir.Open(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{"check": 2, "defrag": 1} {
		if _, code, err := execute(t, "store", command, "--data-dir", folder); code != want || !errors.Is(err, datadir.ErrInUse) {
			t.Errorf("%s of a directory in use: %d, %v", command, code, err)
		}
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStoreCommandsRefuse(t *testing.T) {
	const etcd = "--etcd-servers=http://127.0.0.1:1"
	missing := filepath.Join(t.TempDir(), "missing")
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"migrate --from=x --to=etcd3":                                 {2, `--from="x" must be bbolt or etcd3`},
		"migrate --from=bbolt":                                        {2, `--to="" must be bbolt or etcd3`},
		"migrate --from=bbolt --to=bbolt":                             {2, "must differ"},
		"migrate --from=bbolt --to=etcd3":                             {2, "--etcd-servers must name"},
		"migrate --from=bbolt --to=etcd3 --data-dir=relative " + etcd: {2, `--data-dir="relative" must be an absolute path`},
		"migrate --from=etcd3 --to=bbolt --pad-revisions " + etcd:     {2, "--pad-revisions has no meaning"},
		"migrate --from=bbolt --to=etcd3 unexpected":                  {2, "unexpected"},
		"migrate --form=bbolt":                                        {2, "--form"},
		"--data-dri=/data":                                            {2, "--data-dri"},
		"unexpected":                                                  {2, "unexpected"},
		"store rotate-key --data-dri=/data":                           {2, "--data-dri"},
		"store rotate-key unexpected":                                 {2, "unexpected"},
		"store check --data-dir=" + missing:                           {2, "there are no stores"},
		"store check --storage-backend=etcd3":                         {2, "etcdutl hashkv"},
		"store check --storage-backend=sqlite":                        {2, `--storage-backend="sqlite" must be bbolt or etcd3`},
		"store defrag --data-dir=" + missing:                          {1, "there are no stores"},
		"store defrag --storage-backend=etcd3":                        {2, "etcdctl defrag"},
	} {
		_, code, err := execute(t, strings.Fields(line)...)
		if err == nil || code != want.code || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %d, %v; want %d, %s", line, code, err, want.code, want.text)
		}
	}
}
