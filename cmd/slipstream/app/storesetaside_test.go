// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/etcd3/testserver"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/store/unreadable"
	"github.com/configbutler/slipstream/test/testkit"
)

// records is a server's storage of all kinds, under watch caches, with the monitor of its records.
type records struct {
	*registry.Storage
	stores *stores
	work   *table.Store
	ready  []healthz.HealthChecker
	stop   func()
}

// openRecords starts the storage of a server with opts.
func openRecords(t *testing.T, opts *options.Options) *records {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stores, err := openStores(ctx, opts.Storage)
	if err != nil {
		t.Fatal(err)
	}
	scheme := apiserver.NewScheme()
	config := genericapiserver.NewConfig(apiserver.NewCodecs(scheme))
	rotation, err := openEncryption(ctx, opts, stores, config)
	if err != nil {
		t.Fatal(err)
	}
	if stores.api != nil {
		err = stores.applyFilesTo(ctx, opts.Storage, config) // The metrics can be registered once in a process.
	} else {
		err = stores.applyTo(ctx, opts.Storage, config)
	}
	if err != nil {
		t.Fatal(err)
	}
	monitor := stores.monitorRecords(opts.Storage, rotation, config)
	storage, err := registry.NewStorage(registry.Config{Scheme: scheme, RESTOptions: config.RESTOptionsGetter, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	closeSocket := stores.serveCommands(ctx, opts.Storage, func() {})
	done := make(chan struct{})
	go func() {
		defer close(done)
		monitor.Run(ctx)
	}()
	r := &records{Storage: storage, stores: stores, work: stores.workStore(ctx, opts.Storage, rotation.Encrypter), ready: config.ReadyzChecks}
	r.stop = func() {
		r.stop = func() {}
		err := closeSocket()
		for _, endpoint := range storage.Endpoints {
			endpoint.Destroy()
		}
		cancel()
		<-done
		if err := errors.Join(err, stores.close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *records) create(t *testing.T, name string) {
	t.Helper()
	endpoint := r.Endpoints["gitrepoconfigs"].(rest.Creater) //nolint:misspell // The word is upstream's.
	_, err := endpoint.Create(genericapirequest.WithNamespace(t.Context(), "shop"),
		&configbutler.GitRepoConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       configbutler.GitRepoConfigSpec{RepoURL: "https://git.example.com/x.git"},
		}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// list lists all objects of a resource until the error satisfies until, and returns the names of GitRepoConfigs. A watch cache
// may not be initialized yet.
func (r *records) list(t *testing.T, resource string, until func(error) bool) (names string, err error) {
	t.Helper()
	testkit.EventuallyWithin(t, testkit.Timeout, "the list of "+resource, func(ctx context.Context) error {
		var list any
		list, err = r.Endpoints[resource].(rest.Lister).List(genericapirequest.WithNamespace(ctx, "shop"), &internalversion.ListOptions{})
		names = ""
		if err == nil && resource == "gitrepoconfigs" {
			for _, item := range list.(*configbutler.GitRepoConfigList).Items {
				names += item.Name + " "
			}
		}
		if !until(err) {
			return fmt.Errorf("it ended with %s", fmt.Sprint(err))
		}
		return nil
	})
	return names, err
}

// listFails lists objects of which some cannot be read, and checks the error.
func (r *records) listFails(t *testing.T, wants ...string) {
	t.Helper()
	_, err := r.list(t, "gitrepoconfigs", func(err error) bool {
		return apierrors.ReasonForError(err) == metav1.StatusReasonStoreReadError
	})
	for _, want := range wants {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("listing ended with %v, want %q in it", err, want)
		}
	}
}

func works(err error) bool { return err == nil }

// deleteUnread deletes an object that cannot be read in Kubernetes' own way.
func (r *records) deleteUnread(t *testing.T, name string) {
	t.Helper()
	unsafe := true
	_, _, err := r.Endpoints["gitrepoconfigs"].(rest.CorruptObjectDeleterProvider).GetCorruptObjDeleter().Delete(
		genericapirequest.WithNamespace(t.Context(), "shop"), name, rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &unsafe})
	if err != nil {
		t.Errorf("deleting %s although it cannot be read: %v", name, err)
	}
}

// check returns the result of the health check of the records.
func (r *records) check(t *testing.T) error {
	t.Helper()
	for _, check := range r.ready {
		if check.Name() == unreadable.CheckName {
			return check.Check(nil)
		}
	}
	t.Fatal("the server has no check of the records")
	return nil
}

func (r *records) eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	testkit.Eventually(t, what, func() error {
		if condition() {
			return nil
		}
		return fmt.Errorf("the check returns %s", fmt.Sprint(r.check(t)))
	})
}

// spoil flips the last bit of a stored value.
func spoil(t *testing.T, kv clientv3.KV, key string) (spoiled []byte) {
	t.Helper()
	return change(t, kv, key, func(value []byte) { value[len(value)-1] ^= 1 })
}

// change changes a stored value.
func change(t *testing.T, kv clientv3.KV, key string, change func(value []byte)) (spoiled []byte) {
	t.Helper()
	answer, err := kv.Get(t.Context(), key)
	if err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("%s: %v, %v", key, answer, err)
	}
	spoiled = answer.Kvs[0].Value
	change(spoiled)
	if _, err := kv.Put(t.Context(), key, string(spoiled)); err != nil {
		t.Fatal(err)
	}
	return spoiled
}

// TestUnreadableRecord damages an object and a row of the working state. The server still starts and reports them. The command
// sets them aside, with a running or a stopped server, and all other records can be read again.
func TestUnreadableRecord(t *testing.T) {
	const object, row = "/slipstream/configbutler.ai/gitrepoconfigs/shop/bad", "/slipstream-work/outbox/bad"
	etcd := func(t *testing.T, opts *options.Options) []string {
		opts.Storage.Backend = options.BackendEtcd3
		opts.Storage.Etcd.StorageConfig.Transport.ServerList = testserver.RunEtcd(t, nil).Endpoints()
		return []string{
			"--storage-backend=etcd3", "--etcd-servers=" + opts.Storage.Etcd.StorageConfig.Transport.ServerList[0],
			"--output=" + filepath.Join(opts.Storage.DataDir, "set-aside.jsonl"),
		}
	}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, opts *options.Options) (arguments []string)
		stopped bool
	}{
		"files, running": {func(*testing.T, *options.Options) []string { return nil }, false},
		"files, stopped": {func(*testing.T, *options.Options) []string { return nil }, true},
		"etcd":           {etcd, false},
	} {
		t.Run(name, func(t *testing.T) {
			opts := optionsOn(t.TempDir())
			opts.Storage.Etcd.EncryptionProviderConfigFilepath = configurationOf(t, "mine")
			arguments := append([]string{
				"store", "set-aside", "--data-dir=" + opts.Storage.DataDir,
				"--encryption-provider-config=" + opts.Storage.Etcd.EncryptionProviderConfigFilepath,
			}, test.prepare(t, opts)...)
			before := openRecords(t, opts)
			for _, name := range []string{"bad", "good", "other", "worse"} {
				before.create(t, name)
			}
			if err := before.work.Table("outbox").Put(t.Context(), table.Row{Key: "bad", Value: []byte("x")},
				table.Row{Key: "good", Value: []byte("x")}); err != nil {
				t.Fatal(err)
			}
			value := spoil(t, before.stores.client(t.Context(), before.stores.api).KV, object)
			spoil(t, before.stores.client(t.Context(), before.stores.work).KV, row)
			spoil(t, before.stores.client(t.Context(), before.stores.api).KV, strings.ReplaceAll(object, "bad", "worse"))
			before.stop()

			r := openRecords(t, opts)
			r.listFails(t, "2 stored records of gitrepoconfigs.configbutler.ai", "such as shop/bad", object, unreadable.Command)
			if _, err := r.list(t, "gitdestinations", works); err != nil {
				t.Error(err)
			}
			_, err := r.Endpoints["gitrepoconfigs"].(rest.Getter).Get(genericapirequest.WithNamespace(t.Context(), "shop"), "bad",
				&metav1.GetOptions{})
			if !strings.Contains(fmt.Sprint(err), unreadable.Command) {
				t.Errorf("getting it ended with %v", err)
			}
			if _, err := r.Endpoints["gitrepoconfigs"].(rest.Getter).Get(genericapirequest.WithNamespace(t.Context(), "shop"), "good",
				&metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			r.deleteUnread(t, "worse")
			r.eventually(t, "the check fails over two", func() bool { return strings.HasPrefix(fmt.Sprint(r.check(t)), "2 ") })
			r.listFails(t, "the stored record of gitrepoconfigs.configbutler.ai shop/bad", object, unreadable.Command)
			if err := r.check(t); !strings.Contains(
				err.Error(), "2 stored records cannot be read, such as gitrepoconfigs.configbutler.ai shop/bad") {
				t.Errorf("the check says %v", err)
			}
			values := metrictest.Values(t)
			if values["store_unreadable_records gitrepoconfigs"] != 1 || values["store_unreadable_records work"] != 1 {
				t.Errorf("the metrics are %v", values)
			}
			if test.stopped {
				r.stop()
			}
			set(t, arguments, object, row, value)
			if test.stopped {
				r = openRecords(t, opts)
			}
			if names, err := r.list(t, "gitrepoconfigs", works); names != "good other " {
				t.Errorf("there are %q (%v)", names, err)
			}
			r.eventually(t, "the check passes, and the metric is 0", func() bool {
				if test.stopped { // The metric is that of another process then.
					return r.check(t) == nil
				}
				return r.check(t) == nil && metrictest.Values(t)["store_unreadable_records gitrepoconfigs"] == 0
			})
			if _, found, err := r.work.Table("outbox").Get(t.Context(), "good"); !found || err != nil {
				t.Errorf("the other row: %v, %v", found, err)
			}
			r.create(t, "bad")
		})
	}
}

// set sets both records aside with a command, and checks the file.
func set(t *testing.T, arguments []string, object, row string, value []byte) {
	t.Helper()
	run := func(want int, more ...string) string {
		t.Helper()
		code, out, said := execute(t, "", append(arguments, more...)...)
		if code != want {
			t.Errorf("%v: exit code %d, want %d: %s%s", more, code, want, out, said)
		}
		return out + said
	}
	if said := run(1); !strings.Contains(said, object) || !strings.Contains(said, row) || !strings.Contains(said, "--all for all 2") {
		t.Errorf("without a selection it prints %s", said)
	}
	if said := run(1, strings.ReplaceAll(object, "bad", "good")); !strings.Contains(said, "can be read: nothing was set aside") {
		t.Errorf("for one that can be read it prints %s", said)
	}
	said := run(0, "--all")
	if strings.Count(said, "set aside: ") != 2 {
		t.Errorf("it prints %s", said)
	}
	_, path, _ := strings.Cut(strings.TrimSpace(said), "kept in ")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var first struct {
		Key   string
		Value []byte
	}
	if err := json.Unmarshal([]byte(strings.SplitN(string(content), "\n", 2)[0]), &first); err != nil || first.Key != object ||
		string(first.Value) != string(value) {
		t.Errorf("the file begins with %+v (%v)", first, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has %v (%v)", info.Mode(), err)
	}
	if said := run(0, "--all"); !strings.Contains(said, "every record can be read") {
		t.Errorf("the second time it prints %s", said)
	}
	if said := run(0, object); !strings.Contains(said, "there is no record with the key") {
		t.Errorf("for a record that does not exist it prints %s", said)
	}
}

// TestSetAsideWithoutTheKey refuses to empty a store whose key is missing.
func TestSetAsideWithoutTheKey(t *testing.T) {
	mine, other := configurationOf(t, "mine"), configurationOf(t, "other")
	path := encryptedDirectory(t, mine)
	code, _, said := execute(t, "", "store", "set-aside", "--all", "--data-dir="+path, "--encryption-provider-config="+other)
	if code != 1 || !strings.Contains(said, `none of the 2 records that are encrypted with secretbox "mine" can be read`) {
		t.Errorf("exit code %d: %s", code, said)
	}
	stores, err := openStill(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := stores.api.Range(t.Context(), &pb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0"), CountOnly: true})
	if err != nil || answer.Count != 1 {
		t.Errorf("%v keys are left (%v)", answer, err)
	}
	if err := stores.close(); err != nil {
		t.Error(err)
	}
}

// TestDamagedValues finds damaged values and sets them aside, also if a key is missing.
func TestDamagedValues(t *testing.T) {
	const object = "/slipstream/configbutler.ai/gitrepoconfigs/shop/"
	mine, identity := configurationOf(t, "mine"), writeFile(t, filepath.Join(t.TempDir(), "identity.yaml"),
		"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: ['*.configbutler.ai']\n  providers: "+
			"[identity: {}]\n")
	first, last := func(value []byte) { value[0] ^= 1 }, func(value []byte) { value[len(value)-1] ^= 1 }
	for name, test := range map[string]struct {
		encrypted, checked string
		names              []string
		damage             func(value []byte)
		// refused is the error of --all, if it does not set all of the names aside.
		refused string
	}{
		"the beginning of two":               {mine, mine, []string{"a", "b"}, first, ""},
		"the beginning of two, may be plain": {"", "", []string{"a", "b"}, first, ""},
		"the beginning of all":               {mine, mine, []string{"a", "b", "c", "d"}, first, ""},
		"all with a key that is present":     {mine, mine, []string{"a", "b", "c", "d"}, last, `encrypted with secretbox "mine"`},
		"all are plain, and may not be":      {identity, mine, []string{"a", "b", "c", "d"}, func([]byte) {}, "lacks the provider identity"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := optionsOn(t.TempDir())
			opts.Storage.Etcd.EncryptionProviderConfigFilepath = test.encrypted
			r := openRecords(t, opts)
			for _, name := range []string{"a", "b", "c", "d"} {
				r.create(t, name)
			}
			for _, name := range test.names {
				change(t, r.stores.client(t.Context(), r.stores.api).KV, object+name, test.damage)
			}
			r.stop()
			flags := []string{"--data-dir=" + opts.Storage.DataDir, "--encryption-provider-config=" + test.checked}
			code, out, said := execute(t, "", append([]string{"store", "check"}, flags...)...)
			if want := fmt.Sprintf("api.db: damaged, %d findings", len(test.names)); code != 1 || !strings.Contains(out, want) ||
				strings.Contains(said, "not decrypted") {
				t.Errorf("the check: exit code %d, %s%s", code, out, said)
			}
			code, out, said = execute(t, "", append([]string{"store", "set-aside", "--all"}, flags...)...)
			if test.refused != "" {
				if code != 1 || !strings.Contains(said, test.refused) {
					t.Errorf("setting aside: exit code %d, %s%s, want %q", code, out, said, test.refused)
				}
			} else if code != 0 || strings.Count(out, "set aside: ") != len(test.names) {
				t.Errorf("setting aside: exit code %d, %s%s", code, out, said)
			}
		})
	}
}
