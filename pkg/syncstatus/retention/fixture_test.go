// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/syncstatus/retention"
	"github.com/configbutler/slipstream/test/testkit"
)

var (
	resource = v1alpha1.SchemeGroupVersion.WithResource("syncstatuses")
	policies = v1alpha1.SchemeGroupVersion.WithResource("syncpolicies")
	today    = time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
)

// instantClock is a clock whose After fires immediately, and is counted.
type instantClock struct {
	*clocktesting.FakeClock
	mu    sync.Mutex
	waits []time.Duration
}

func newInstantClock() *instantClock {
	return &instantClock{FakeClock: clocktesting.NewFakeClock(today)}
}

func (c *instantClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, d)
	after := make(chan time.Time, 1)
	after <- c.Now()
	return after
}

// fixture has an API with records, and a folder for the archive.
type fixture struct {
	client *fake.Clientset
	clock  *instantClock
	folder string
	// process is the process that deletes records, and in a gitFixture writes to the branch and the work store.
	process *testkit.Process
	// largestPage is the largest limit of a list request.
	largestPage int64
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	return newFixtureIn(filepath.Join(t.TempDir(), "archive"), objects...)
}

func newFixtureIn(folder string, objects ...runtime.Object) *fixture {
	s := &fixture{
		client: fake.NewClientset(objects...), clock: newInstantClock(), folder: folder, process: &testkit.Process{},
	}
	s.client.PrependReactor("list", resource.Resource, s.page)
	s.client.PrependReactor("delete", resource.Resource, s.checkPreconditions)
	s.client.PrependReactor("delete", resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		err := s.process.Count()
		return err != nil, nil, err
	})
	return s
}

func (s *fixture) config() retention.Config {
	return retention.Config{Folder: s.folder, Period: time.Hour}
}

// server returns what controllers of a new process share.
func (s *fixture) server() *controller.Process {
	return &controller.Process{Client: s.client, Clock: s.clock}
}

// sweeper returns the sweeper of a new process.
func (s *fixture) sweeper() *retention.Sweeper { return retention.New(s.config(), s.server()) }

// page handles a list request like an API server: sorted by name, with at most as many items as the limit.
func (s *fixture) page(action clienttesting.Action) (bool, runtime.Object, error) {
	options := action.(clienttesting.ListActionImpl).ListOptions
	if options.Limit == 0 {
		return true, nil, apierrors.NewBadRequest("a list without a limit")
	}
	s.largestPage = max(s.largestPage, options.Limit)
	names, records := s.records()
	start, _ := strconv.Atoi(options.Continue)
	end := min(len(names), start+int(options.Limit))
	list := &v1alpha1.SyncStatusList{}
	for _, name := range names[start:end] {
		list.Items = append(list.Items, *records[name])
	}
	if end < len(names) {
		list.Continue = strconv.Itoa(end)
	}
	return true, list, nil
}

// records returns the records in the API, and their sorted names.
func (s *fixture) records() ([]string, map[string]*v1alpha1.SyncStatus) {
	stored, err := s.client.Tracker().List(resource, v1alpha1.SchemeGroupVersion.WithKind("SyncStatus"), "")
	if err != nil {
		panic(err)
	}
	records := map[string]*v1alpha1.SyncStatus{}
	list := stored.(*v1alpha1.SyncStatusList)
	for i := range list.Items {
		records[list.Items[i].Namespace+"/"+list.Items[i].Name] = &list.Items[i]
	}
	return slices.Sorted(maps.Keys(records)), records
}

// remaining returns the names of the records in the API.
func (s *fixture) remaining() []string {
	names, _ := s.records()
	return names
}

// checkPreconditions checks the preconditions of a deletion like an API server, and requires them.
func (s *fixture) checkPreconditions(action clienttesting.Action) (bool, runtime.Object, error) {
	deletion := action.(clienttesting.DeleteActionImpl)
	required := deletion.DeleteOptions.Preconditions
	if required == nil || required.UID == nil || required.ResourceVersion == nil {
		return true, nil, apierrors.NewBadRequest("a deletion without preconditions")
	}
	stored, err := s.client.Tracker().Get(resource, deletion.Namespace, deletion.Name)
	record, found := stored.(*v1alpha1.SyncStatus)
	if err == nil && found && (record.UID != *required.UID || record.ResourceVersion != *required.ResourceVersion) {
		return true, nil, apierrors.NewConflict(resource.GroupResource(), deletion.Name, fmt.Errorf("it is another one"))
	}
	return false, nil, nil
}

// policy returns a policy with an archive of files that keeps records for 90 days.
func policy(change ...func(*v1alpha1.Retention)) *v1alpha1.SyncPolicy {
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName}}
	policy.Spec.Retention.KeepPerSubject = new(int32)
	policy.Spec.Retention.Archive = &v1alpha1.Archive{Type: v1alpha1.ArchiveFile}
	for _, apply := range change {
		apply(&policy.Spec.Retention)
	}
	return policy
}

func unarchived(r *v1alpha1.Retention) { r.Archive = nil }

// setPolicy sets the spec of the SyncPolicy, and increments its generation.
func (s *fixture) setPolicy(t *testing.T, to *v1alpha1.SyncPolicy) {
	t.Helper()
	stored, err := s.client.Tracker().Get(policies, "", v1alpha1.SyncPolicyName)
	if err != nil {
		t.Fatal(err)
	}
	policy := stored.DeepCopyObject().(*v1alpha1.SyncPolicy)
	policy.Spec = to.Spec
	policy.Generation++
	if err := s.client.Tracker().Update(policies, policy, ""); err != nil {
		t.Fatal(err)
	}
}

// catalog returns a catalog.
func catalog(name string) *v1alpha1.AppCatalog {
	return &v1alpha1.AppCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, UID: types.UID("uid-of-" + name)}}
}

// environment returns an environment.
func environment(name string) *v1alpha1.Environment {
	return &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, UID: types.UID("uid-of-" + name)}}
}

// record returns a record of a catalog that is some days old.
func record(catalog, suffix string, days int, change ...func(*v1alpha1.SyncStatus)) *v1alpha1.SyncStatus {
	record := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "teams", Name: catalog + "-" + suffix, UID: types.UID("uid-of-" + catalog + "-" + suffix), ResourceVersion: "7",
			Labels: map[string]string{v1alpha1.LabelCatalog: catalog},
		},
		Spec: v1alpha1.SyncStatusSpec{
			Type: v1alpha1.SyncTypeCatalog, Batch: suffix,
			Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectAppCatalog, Name: catalog, UID: types.UID("uid-of-" + catalog)},
		},
		Status: v1alpha1.SyncRecord{
			State: v1alpha1.SyncStateAutoApplied, AutoTriggered: true, DetectedAt: metav1.NewTime(today.AddDate(0, 0, -days)),
			WorkloadNames: []string{"api", "worker <&>"},
		},
	}
	for _, apply := range change {
		apply(record)
	}
	return record
}

func failed(r *v1alpha1.SyncStatus) { r.Status.State = v1alpha1.SyncStateFailed }

func retrying(r *v1alpha1.SyncStatus) { r.Status.State = v1alpha1.SyncStateRetrying }

func awaiting(r *v1alpha1.SyncStatus) { r.Status.State = v1alpha1.SyncStateManualIntervention }

// many returns expired records of a catalog.
func many(number int, change ...func(*v1alpha1.SyncStatus)) []runtime.Object {
	objects := make([]runtime.Object, number)
	for i := range objects {
		objects[i] = record("shop", fmt.Sprintf("%05d", i), 100, change...)
	}
	return objects
}

// archived returns the records in the archive in order, by file.
func archived(t *testing.T, folder string) map[string][]*v1alpha1.SyncStatus {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	records := map[string][]*v1alpha1.SyncStatus{}
	for _, file := range files {
		records[filepath.Base(file)] = readArchive(t, file)
	}
	return records
}

func readArchive(t *testing.T, path string) (records []*v1alpha1.SyncStatus) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		record := &v1alpha1.SyncStatus{}
		if err := json.Unmarshal(lines.Bytes(), record); err != nil {
			t.Fatalf("%s: %v in %.200q", path, err, lines.Text())
		}
		records = append(records, record)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return records
}

// archivedNames returns the names of all records in the archive, in the order of files and lines.
func archivedNames(t *testing.T, folder string) (names []string) {
	t.Helper()
	byFile := archived(t, folder)
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		for _, record := range byFile[file] {
			names = append(names, record.Namespace+"/"+record.Name)
		}
	}
	return names
}

// run runs the controller until ctx is done.
func run(ctx context.Context, config retention.Config, process *controller.Process) error {
	shared := &controller.Shared{Process: process, Informers: externalversions.NewSharedInformerFactory(process.Client, 0)}
	c := &retention.Controller{Config: config}
	sweep, err := c.Setup(ctx, shared)
	if err != nil {
		return err
	}
	defer shared.Informers.Shutdown()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shared.Informers.StartWithContext(ctx)
	shared.Informers.WaitForCacheSyncWithContext(ctx)
	return sweep(ctx)
}
