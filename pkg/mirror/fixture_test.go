// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/tracing"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
	"github.com/configbutler/slipstream/pkg/mirror/internal/keyring"
	"github.com/configbutler/slipstream/pkg/mirror/internal/proposal"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// fixture is a mirror with its environment except an API server: a store on disk, a Git server, and a cluster that the test changes.
type fixture struct {
	t       *testing.T
	cluster *cluster
	process *process
	kv      *storeKV
	git     *gitFront
	in      inputs
	limits  Limits
	backlog backlogLimit
	// facts, hash and maxWait are fields of the mirror's Config.
	facts   attribution.Facts
	hash    func([]byte) string
	maxWait time.Duration
	// requestTimeout is the timeout of requests to remotes.
	requestTimeout time.Duration
	// installation identifies the installation, leases configures the Leases of branches.
	installation string
	leases       Leases
	// hostPatience bounds the requests to a Git host in one cycle.
	hostPatience time.Duration
	// api is the Git host for pull requests; nil if there is none.
	api *githosttest.Server
	// hostUnlimited is set if requests to a Git host end with the process only.
	hostUnlimited bool
	// pollInterval is how often the remote is polled without a trigger.
	pollInterval time.Duration
	// proposalInterval is the shortest time between two updates of the text of a pull request.
	proposalInterval time.Duration
	// retry is the delay after the first error.
	retry time.Duration
	// changed is called when the worker requests an update of conditions.
	changed atomic.Pointer[func()]
	// rechecks counts the requested checks of GitRepoConfigs.
	rechecks atomic.Int64
	// warned receives the warnings of destinations; its capacity is larger than any test needs.
	warned chan string
	// ahead is the offset of the clock for the expiry of keys.
	ahead atomic.Int64
	// earlier are the records of the previous process.
	earlier map[types.UID]v1alpha1.GitDestinationRecord
	// secrets has the Secrets of the cluster that the server runs in.
	secrets *fake.Clientset
	// host returns the client of the Git host for pull requests; nil if there is none.
	host func(context.Context, branchKey) (githost.Host, error)
	// deposits are the Deposits of the mirror's Config, azure is its Azure.
	deposits *Deposits
	azure    *AzureIdentity
	// events has all Events except warnings.
	events testkit.EventLog
	// recorded is set if Changes are recorded; openFiles opens the contents of files for a process, nil for none.
	recorded  bool
	openFiles func() *blobcache.Cache
	// tracing starts traces; nil for none.
	tracing trace.TracerProvider
	// bypassed receives the Events about bypasses; its capacity is larger than any test needs.
	bypassed chan string

	// The fields below belong to the running process.
	*mirror
	ctx   context.Context //nolint:containedctx // the test is what runs in it
	stop  func()
	group *wait.Group
}

// newFixture starts a mirror of the ConfigMaps of namespace shop, which the rule of world selects, to clusters/a on main. prepare may
// change that.
func newFixture(t *testing.T, prepare ...func(*fixture)) *fixture {
	t.Helper()
	t.Parallel() // most of the time is spent waiting
	return furtherFixture(t, prepare...)
}

// furtherFixture is newFixture for a test that already has a fixture.
func furtherFixture(t *testing.T, prepare ...func(*fixture)) *fixture {
	t.Helper()
	s := &fixture{t: t, cluster: newCluster(), process: &process{}, in: world(), requestTimeout: testkit.Timeout, hostPatience: testkit.Timeout, pollInterval: time.Hour,
		proposalInterval: 10 * time.Millisecond, retry: 10 * time.Millisecond, installation: "system/one", secrets: fake.NewClientset(),
		warned: make(chan string, 100), bypassed: make(chan string, 100)}
	s.kv, s.git = newStoreKV(t, s.process), newGitFront(t, s.process)
	s.leases = Leases{Namespace: "system", Duration: 24 * time.Second, Renew: 8 * time.Second}
	s.backlog = backlogLimit{rows: maxBacklogRows, bytes: maxBacklogBytes}
	s.limits = Limits{MaxFiles: 200, MaxBytes: 1 << 20, MaxWait: time.Second, Workers: 4, WorkersPerRepository: 2}
	s.in.repositories[0].Spec.RepoURL = s.git.url + "/shop.git"
	s.in.namespaces = s.cluster.namespace
	for _, change := range prepare {
		change(s)
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// start starts a process.
func (s *fixture) start() {
	s.t.Helper()
	logger := ktesting.NewLogger(s.t, ktesting.NewConfig(ktesting.Verbosity(1), ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	ctx = tracing.WithProvider(ctx, s.tracing)
	store := table.New(s.kv, "/test")
	m := &mirror{
		config: Config{Deposits: s.deposits}, shared: sharing(store), watches: newWatchStates(),
		router: &router{
			namespaces: s.in.namespaces, authors: newAuthors(Config{Facts: s.facts, Hash: s.hash, AttributionMaxWait: s.maxWait}),
		},
		repositories: &repositories{
			cluster: s.secrets, network: onThisHost(s.t), allowInsecure: true, now: s.now, limits: gitrepo.Limits{Time: s.requestTimeout},
			tokens: gittoken.New(onThisHost(s.t), s.now), azure: s.azure,
		},
		replan: make(chan struct{}, 1), publish: make(chan struct{}, 1),
	}
	m.registry = newRegistry(m.router, m.replan, m.publish)
	m.router.limit, m.router.refused = s.backlog, m.registry.refused
	m.router.event, m.router.marks = s.event, marking{s.hash}
	m.router.bypasses = newBypasses(func(object *unstructured.Unstructured, message string) {
		s.bypassed <- object.GetName() + ": " + message
	})
	m.publisher = &publisher{watches: m.watches, registry: m.registry}
	m.encryption = newEncryption(keyring.New(s.secrets.CoreV1(), "system"), func() {})
	m.services = &branchServices{
		pushes: &pushLog{table: store.Table("pushes")}, lister: s.cluster, limits: s.limits, namespaces: s.in.namespaces,
		identity: Identity{ClusterUID: "cluster", Namespace: "system", Name: "slipstream", Instance: "one", Installation: s.installation},
		remote:   s.remote, signer: m.repositories.signer, retry: s.retry, pollInterval: s.pollInterval, running: m.watches.running,
		starting: m.watches.starting, event: s.event, changed: s.notify, recheck: func(types.NamespacedName) { s.rechecks.Add(1) },
		names: m.registry.names, unserved: m.registry.unserved, claimed: m.registry.claimed, author: m.router.authors.joiner.Find,
		leases: func(key branchKey) *branchLease {
			return newBranchLease(s.secrets.CoordinationV1(), s.installation, s.leases, key)
		},
		slots: newSlots(s.limits.Workers, s.limits.WorkersPerRepository),
		marks: marking{s.hash}, proposals: &proposal.Log{Table: store.Table("proposals")}, host: s.host,
		proposalInterval: s.proposalInterval, hostPatience: s.hostPatience,
	}
	if s.openFiles != nil {
		m.services.memory = memory{s.openFiles()}
	}
	if s.recorded {
		m.services.history = s.openHistory()
	}
	m.registry.services = m.services
	s.process.start(cancel)
	if err := m.recover(ctx); err != nil {
		s.t.Fatal(err)
	}
	s.mirror, s.ctx, s.group = m, ctx, &wait.Group{}
	group := s.group
	m.router.authors.joiner.Start(ctx, group)
	group.Start(func() { m.services.outbox.Run(ctx, m.outboxEvents()) })
	group.StartWithContext(ctx, m.receiveDeposits)
	m.registry.earlier = s.earlier
	s.stop = sync.OnceFunc(func() {
		cancel()
		s.cluster.unfollow()
		group.Wait()
	})
	s.plan()
}

// event records an Event of a destination: warnings in warned, others in events.
func (s *fixture) event(d *v1alpha1.GitDestination, eventType, reason, message string) {
	if eventType == corev1.EventTypeWarning {
		s.warned <- d.Name + ": " + reason + ": " + message
		return
	}
	s.events.Event(d, eventType, reason, message)
}

// now returns the time for the expiry of keys.
func (s *fixture) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// logged returns the log of the current process.
func (s *fixture) logged() string {
	s.t.Helper()
	sink, ok := klog.FromContext(s.ctx).GetSink().(ktesting.Underlier)
	if !ok {
		s.t.Fatal("the log is not kept")
	}
	return sink.GetBuffer().String()
}

// onChange sets the function that is called when the worker requests an update of conditions.
func (s *fixture) onChange(call func()) { s.changed.Store(&call) }

// notify calls the function of onChange.
func (s *fixture) notify() {
	if call := s.changed.Load(); call != nil {
		(*call)()
	}
}

// plan applies the plan of the current inputs.
func (s *fixture) plan() {
	s.t.Helper()
	s.in.claims, s.in.now = s.registry.claims(), time.Now()
	s.in.keys = s.encryption.keysFor(s.ctx, s.in.destinations)
	watches := s.registry.apply(s.ctx, newPlan(s.in), s.group)
	s.cluster.follow(s.ctx, s.watchHandler(), watches...)
	s.watches.retain(watches)
	if err := errors.Join(s.registry.dropRows(s.ctx), s.registry.removeOverflows(s.ctx)); err != nil && s.ctx.Err() == nil && !s.kv.failing() {
		s.t.Error(err)
	}
}

// remote replaces mirror.remote, which reads from informers.
func (s *fixture) remote(ctx context.Context, key branchKey) (*gitrepo.Remote, error) {
	for _, config := range s.in.repositories {
		if nameOf(config) == key.repository {
			return s.repositories.remote(ctx, config)
		}
	}
	return nil, errors.New("no such GitRepoConfig")
}

// destination returns the mirror's destination with a name in namespace shop.
func (s *fixture) destination(name string) *destination {
	return s.registry.get(types.NamespacedName{Namespace: "shop", Name: name})
}

// relabel changes a namespace and notifies the mirror.
func (s *fixture) relabel(namespace watch.Namespace) {
	s.registry.namespaceChanged(s.cluster.setNamespace(namespace))
}

// run runs git in the repository of the destination.
func (s *fixture) run(arguments ...string) (string, error) { return s.runWith("", arguments...) }

// runWith is run with a standard input.
func (s *fixture) runWith(stdin string, arguments ...string) (string, error) {
	command := exec.CommandContext(context.WithoutCancel(s.t.Context()), "git", arguments...)
	command.Dir, command.Stdin = filepath.Join(s.git.root, "shop.git"), strings.NewReader(stdin)
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		// A push of the server can hold the lock of a reference.
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.filesRefLockTimeout", "GIT_CONFIG_VALUE_0=60000",
		"GIT_CONFIG_KEY_1=core.packedRefsTimeout", "GIT_CONFIG_VALUE_1=60000")
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", arguments[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// mustRun runs git, which must not fail.
func (s *fixture) mustRun(arguments ...string) string {
	s.t.Helper()
	out, err := s.run(arguments...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// files returns the blobs of a branch by path, without markers.
func (s *fixture) files(branch string) (map[string]string, error) {
	files := map[string]string{}
	out, err := s.run("ls-tree", "-r", "--format=%(objectname) %(path)", branch)
	for line := range strings.Lines(out) {
		hash, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasSuffix(path, markerPath) {
			files[path] = hash
		}
	}
	if err != nil && strings.Contains(err.Error(), "Not a valid object name") {
		err = nil // the branch does not exist yet
	}
	return files, err
}

// holds waits until a folder of a branch has exactly the files of the selected objects.
func (s *fixture) holds(branch, folder string, selected func(outbox.Object) bool) {
	s.t.Helper()
	testkit.Eventually(s.t, "the files of "+branch+" "+folder, func() error {
		files, err := s.files(branch)
		if err != nil {
			return err
		}
		got := map[string]string{}
		for path, hash := range files {
			below, inside := strings.CutPrefix(path, folder+"/")
			if _, managed := parseManaged(below); inside && managed {
				got[below] = hash
			}
		}
		if want := s.cluster.rendered(selected); !maps.Equal(got, want) {
			return fmt.Errorf("%d files for %d objects: %s", len(got), len(want), difference(got, want))
		}
		return nil
	})
}

// difference describes the difference between two sets of files.
func difference(got, want map[string]string) string {
	var lines []string
	for path, hash := range want {
		if got[path] != hash {
			lines = append(lines, "lacks "+path)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			lines = append(lines, "has "+path)
		}
	}
	return strings.Join(lines[:min(len(lines), 5)], ", ")
}

// mirrored waits until Git has what the rule of world selects.
func (s *fixture) mirrored() {
	s.t.Helper()
	s.holds("main", "clusters/a", inShop)
}

// idle waits until no change and no comparison is pending.
func (s *fixture) idle() {
	s.t.Helper()
	testkit.Eventually(s.t, "idle", func() error {
		for _, d := range s.registry.all() {
			if d.seeds.outstanding() || d.queue.Backlog().Rows > 0 || !d.record.current().served {
				return fmt.Errorf("%s: %s", d.key, summarize(d, s.publisher.failure(d), ""))
			}
		}
		return nil
	})
}

// watching returns the state of watches for newRecord.
func (s *fixture) watching(d *destination) func(schema.GroupVersionResource) (bool, string) {
	return func(t schema.GroupVersionResource) (bool, string) { return s.watches.of(d.plan.Load(), t) }
}

func writeFile(folder, path, content string) error {
	path = filepath.Join(folder, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func inShop(o outbox.Object) bool {
	return o.GroupVersionResource() == configMaps && o.Namespace == "shop"
}

// commits returns the subjects of a branch's commits, the oldest first.
func (s *fixture) commits(branch string) []string {
	s.t.Helper()
	return strings.Split(s.mustRun("log", "--reverse", "--format=%s", branch), "\n")
}

// perChange configures one commit for each change.
func perChange(s *fixture) {
	s.in.destinations[0].Spec.Granularity = v1alpha1.GranularityPerChange
}

func TestChangesReachGit(t *testing.T) {
	s := newFixture(t, perChange)
	s.idle()
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.cluster.put(configMap("a"), "2")
	s.mirrored()
	s.cluster.put(configMap("a"), "2") // without a change of content
	s.cluster.remove(configMap("a"))
	s.mirrored()
	s.idle()
	want := "[CREATE] v1/configmaps shop/a, [UPDATE] v1/configmaps shop/a, [DELETE] v1/configmaps shop/a"
	if got := strings.Join(s.commits("main"), ", "); got != want {
		t.Errorf("commits: got %s, want %s", got, want)
	}
}

// sharing returns a Shared that has only a work store.
func sharing(store *table.Store) *controller.Shared {
	return &controller.Shared{Process: &controller.Process{Store: store}}
}
