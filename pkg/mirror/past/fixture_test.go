// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kubefake "k8s.io/client-go/kubernetes/fake"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/past"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

const (
	baseFolder = "clusters/a"
	clusterUID = "cluster"
)

// noon is the present of these tests.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// fixture is a Past of a repository, which the destination shop/main has written.
type fixture struct {
	*past.Past

	t           *testing.T
	repository  string
	api         *fake.Clientset
	cluster     *kubefake.Clientset
	destination *v1alpha1.GitDestination
	contents    *contents
	clock       *testingclock.FakePassiveClock
	key         *age.X25519Identity
	commits     int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{
		t: t, repository: filepath.Join(t.TempDir(), "shop.git"), contents: &contents{held: map[gitrepo.Hash][]byte{}},
		clock: testingclock.NewFakePassiveClock(noon),
	}
	f.git("", "init", "--quiet", "--bare", "--initial-branch=main", f.repository)
	f.git(f.repository, "config", "uploadpack.allowFilter", "true")
	f.git(f.repository, "config", "uploadpack.allowAnySHA1InWant", "true")
	f.destination = newDestination("shop", "main")
	config := &v1alpha1.GitRepoConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repo", UID: "repo", Generation: 1},
		Spec:       v1alpha1.GitRepoConfigSpec{RepoURL: "file://" + f.repository, AllowedBranches: []string{"main"}},
	}
	f.api = fake.NewClientset(config, f.destination)
	f.cluster = kubefake.NewClientset()
	f.createNamespace(noon.AddDate(-1, 0, 0))
	var err error
	if f.key, err = age.GenerateX25519Identity(); err != nil {
		t.Fatal(err)
	}
	f.Past = past.New(past.Config{
		Client: f.api, Cluster: f.cluster, Namespace: "system", Contents: f.contents,
		Schemas: diff.NewSchemas(nil, testingclock.NewFakePassiveClock(noon)), Clock: f.clock,
		Sources: mirror.NewSources(mirror.SourcesConfig{
			Client: f.api, Cluster: f.cluster, Installation: "system/slipstream", AllowInsecure: true,
			Namespace: func(name string) (watch.Namespace, bool) {
				return watch.Namespace{Name: name, UID: map[string]types.UID{"kube-system": clusterUID}[name]}, true
			},
		}),
	})
	return f
}

func newDestination(namespace, name string) *v1alpha1.GitDestination {
	return &v1alpha1.GitDestination{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.GitDestinationSpec{
			RepoRef: v1alpha1.ObjectReference{Namespace: "shop", Name: "repo"}, Branch: "main", BaseFolder: baseFolder,
		},
	}
}

// createNamespace creates the namespace shop at a time.
func (f *fixture) createNamespace(at time.Time) {
	f.t.Helper()
	_, err := f.cluster.CoreV1().Namespaces().Create(f.t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", CreationTimestamp: metav1.NewTime(at)},
	}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
}

// deleteNamespace deletes the namespace shop.
func (f *fixture) deleteNamespace() {
	f.t.Helper()
	if err := f.cluster.CoreV1().Namespaces().Delete(f.t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// holdKey stores the private key and the seed of the server.
func (f *fixture) holdKey() {
	f.t.Helper()
	f.holdSecret("slipstream-age", "age.agekey", []byte(f.key.String()+"\n"))
	f.holdSecret("slipstream-age-seed", "seed", seed)
}

func (f *fixture) holdSecret(name, key string, value []byte) {
	f.t.Helper()
	_, err := f.cluster.CoreV1().Secrets("system").Create(f.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: name}, Data: map[string][]byte{key: value},
	}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) git(folder string, arguments ...string) string {
	f.t.Helper()
	return f.feed(folder, nil, arguments...)
}

func (f *fixture) feed(folder string, input []byte, arguments ...string) string {
	f.t.Helper()
	command := exec.CommandContext(f.t.Context(), "git", arguments...)
	command.Dir, command.Stdin = folder, bytes.NewReader(input)
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := command.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %s: %v: %s", arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

// marker is the marker of the destination shop/main.
const marker = "clusterUID: cluster\nnamespace: shop\nname: main\ninstance: system/slipstream\n"

// owned are files with the marker of the destination.
func owned(files map[string]string) map[string]string {
	files = maps.Clone(files)
	if files == nil {
		files = map[string]string{}
	}
	files[baseFolder+"/.configbutler/owner.yaml"] = marker
	return files
}

// commit commits files by their path in the repository, an hour after the commit before, the first ten hours before noon; an empty
// content removes the file. It returns the hash.
func (f *fixture) commit(files map[string]string) string {
	f.t.Helper()
	return f.commitAt(noon.Add(time.Duration(f.commits-10)*time.Hour), files)
}

// commitAt commits files with a time.
func (f *fixture) commitAt(at time.Time, files map[string]string) string {
	f.t.Helper()
	return f.commitLate(at, at, files)
}

// commitLate commits files with the times of the author and of the committer.
func (f *fixture) commitLate(seen, at time.Time, files map[string]string) string {
	f.t.Helper()
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "commit refs/heads/main\nauthor jane <jane@example.com> %d +0000\n", seen.Unix())
	fmt.Fprintf(&stream, "committer other <other@example.com> %d +0000\ndata 1\nx\n", at.Unix())
	if f.commits > 0 {
		stream.WriteString("from refs/heads/main^0\n")
	}
	f.commits++
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if files[path] == "" {
			fmt.Fprintf(&stream, "D %s\n", path)
			continue
		}
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(files[path]), files[path])
	}
	f.feed(f.repository, stream.Bytes(), "fast-import", "--quiet", "--force")
	return f.git(f.repository, "rev-parse", "main")
}

// path returns the path of an object's file in the repository.
func path(t *testing.T, group, resource, namespace, name string) string {
	t.Helper()
	below, err := manifest.Location{Group: group, Version: "v1", Resource: resource, Namespace: namespace, Name: name}.Path()
	if err != nil {
		t.Fatal(err)
	}
	return baseFolder + "/" + below
}

// configMaps returns the files of ConfigMaps, each given as namespace/name=color.
func configMaps(t *testing.T, maps ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, each := range maps {
		object, color, _ := strings.Cut(each, "=")
		namespace, name, _ := strings.Cut(object, "/")
		files[path(t, "", "configmaps", namespace, name)] = fmt.Sprintf(
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\n  labels:\n    color: %s\ndata:\n  color: %s\n", name, namespace, color, color)
	}
	return files
}

// secret is Secret shop/database.
func secret(password string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"name": "database", "namespace": "shop", "labels": map[string]any{"app": "web"},
			"annotations": map[string]any{"example.com/token": "annotated"},
		},
		"data": map[string]any{"password": password, "user": "YWRtaW4="},
	}}
}

func plain(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	content, err := manifest.Render(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// seed is that with which Secrets are encrypted.
var seed = bytes.Repeat([]byte{7}, sops.SeedSize)

// encrypted returns the file of an object, encrypted for the server's key.
func (f *fixture) encrypted(object *unstructured.Unstructured) string {
	f.t.Helper()
	encrypter, err := sops.NewEncrypter(seed, []string{f.key.Recipient().String()})
	if err != nil {
		f.t.Fatal(err)
	}
	content, err := encrypter.Encrypt(object)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(content)
}

// contents is a cache of contents.
type contents struct {
	held map[gitrepo.Hash][]byte
	// given is the size of what Get has returned, in bytes.
	given int
}

func (c *contents) Get(hash gitrepo.Hash) ([]byte, bool) {
	content, found := c.held[hash]
	c.given += len(content)
	return content, found
}

func (c *contents) Put(hash gitrepo.Hash, content []byte) { c.held[hash] = content }

// rights are what a user may do, each as "verb resource namespace" or "verb resource namespace/name". The namespace of the whole cluster
// is empty.
type rights []string

func (r rights) reader() *access.Reader {
	return access.NewReader(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		what := a.GetVerb() + " " + a.GetResource() + " "
		if slices.Contains(r, what+a.GetNamespace()) || slices.Contains(r, what+a.GetNamespace()+"/"+a.GetName()) || slices.Contains(r, "all") {
			return authorizer.DecisionAllow, "", nil
		}
		if slices.Contains(r, "fails") {
			return authorizer.DecisionNoOpinion, "", errors.New("unreachable")
		}
		return authorizer.DecisionNoOpinion, "", nil
	}), &user.DefaultInfo{Name: "jane"})
}

// all are all rights.
var all = rights{"all"}

// read reads objects of the destination.
func (f *fixture) read(r rights, options v1alpha1.ManifestOptions) (*v1alpha1.ManifestList, error) {
	f.t.Helper()
	return f.Objects(f.t.Context(), f.destination, &options, r.reader())
}

// colors reads objects and returns them with their colors, each as kind namespace/name=color.
func (f *fixture) colors(r rights, options v1alpha1.ManifestOptions) (string, error) {
	f.t.Helper()
	list, err := f.read(r, options)
	if err != nil {
		return "", err
	}
	return strings.Join(described(f.t, list), " "), nil
}

func described(t *testing.T, list *v1alpha1.ManifestList) []string {
	t.Helper()
	var texts []string
	for _, item := range list.Items {
		object := objectOf(t, &item)
		color, _, _ := unstructured.NestedString(object.Object, "data", "color")
		texts = append(texts, object.GetNamespace()+"/"+object.GetName()+"="+color)
	}
	return texts
}

func objectOf(t *testing.T, item *runtime.RawExtension) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(item.Raw); err != nil {
		t.Fatal(err)
	}
	return object
}

// wantReason fails the test unless an error has the reason and contains the text.
func wantReason(t *testing.T, err error, reason metav1.StatusReason, text string) {
	t.Helper()
	if apierrors.ReasonForError(err) != reason || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("error %v (%s), want %s with %q", err, apierrors.ReasonForError(err), reason, text)
	}
}
