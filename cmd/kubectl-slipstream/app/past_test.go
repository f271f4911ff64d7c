// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// state is what is in Git at some commit, by resource and name.
type state map[string]*unstructured.Unstructured

// pastCluster serves the namespace shop and what a destination has of it. A write becomes a commit and a Change at once.
type pastCluster struct {
	*httptest.Server
	t       *testing.T
	objects state
	version int
	// states are the contents at the commits, the oldest first. changes are what they changed.
	states  []state
	changes []v1alpha1.Change
	// sealed makes the server refuse the values of Secrets.
	sealed bool
	// withheld makes the server leave Secrets out of lists of values.
	withheld bool
	// unreadable is a file that is no object.
	unreadable []string
	// lost is the name of a Change whose contents cannot be read.
	lost string
	// ignore are the ignore rules of the destination.
	ignore []v1alpha1.IgnoreRule
	// beforeWrite is called before a write that is not a dry run.
	beforeWrite func()
	// refuseWrite returns why a write that is not a dry run is refused, nil if it is not.
	refuseWrite func(method, name string) *apierrors.StatusError
	// validate returns why an object is not accepted, nil if it is.
	validate func(*unstructured.Unstructured) *apierrors.StatusError
	requests []string
}

// kindsOfShop are the types that the cluster serves.
var kindsOfShop = map[string]schema.GroupVersionKind{
	"configmaps":             {Version: "v1", Kind: "ConfigMap"},
	"secrets":                {Version: "v1", Kind: "Secret"},
	"deployments":            {Group: "apps", Version: "v1", Kind: "Deployment"},
	"ingresses":              {Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	"namespaces":             {Version: "v1", Kind: "Namespace"},
	"persistentvolumeclaims": {Version: "v1", Kind: "PersistentVolumeClaim"},
	"widgets":                {Group: "example.com", Version: "v1", Kind: "Widget"}, // The group is not served.
}

func newPastCluster(t *testing.T) *pastCluster {
	t.Helper()
	c := &pastCluster{t: t, objects: state{}, states: []state{{}}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	c.store("namespaces", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"},
	}}, nil)
	return c
}

func shaOf(i int) string { return fmt.Sprintf("%07x%033x", 0xabc000+i, i) }

// commitAt returns a commit. The clock of the cluster is a minute per commit.
func (c *pastCluster) commitAt(i int) *v1alpha1.ManifestCommit {
	return &v1alpha1.ManifestCommit{SHA: shaOf(i), Time: metav1.NewTime(epoch.Add(time.Duration(i) * time.Minute))}
}

var epoch = time.Date(2026, 7, 3, 8, 0, 0, 0, time.UTC)

// store writes an object as jane, nil to delete it, and commits it.
func (c *pastCluster) store(resource string, object *unstructured.Unstructured, deleted *unstructured.Unstructured) {
	c.version++
	next := len(c.states)
	key := resource + "/"
	operation := v1alpha1.ChangeUpdate
	var before, after *unstructured.Unstructured
	if object != nil {
		key += object.GetName()
		object.SetResourceVersion(strconv.Itoa(c.version))
		if old := c.objects[key]; old == nil {
			operation = v1alpha1.ChangeCreate
			object.SetUID(types.UID(fmt.Sprintf("uid-%d", c.version)))
			object.SetCreationTimestamp(metav1.NewTime(epoch.Add(time.Duration(next) * time.Minute)))
		}
		c.objects[key] = object
		after = c.content(object)
	} else {
		key += deleted.GetName()
		operation = v1alpha1.ChangeDelete
		delete(c.objects, key)
	}
	state := maps.Clone(c.states[next-1])
	before = state[key]
	if state[key] = after; after == nil {
		delete(state, key)
	}
	c.states = append(c.states, state)
	id := kindsOfShop[resource]
	name := strings.TrimPrefix(key, resource+"/")
	c.changes = append([]v1alpha1.Change{{
		TypeMeta:   metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "Change"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: c.changeName(next)},
		Spec: v1alpha1.ChangeSpec{
			Object: v1alpha1.ChangedObject{
				APIVersion: id.GroupVersion().String(), Kind: id.Kind, Resource: resource, Namespace: "shop", Name: name,
			},
			Operation: operation, Time: metav1.NewMicroTime(time.Now().Add(time.Duration(next-60) * 24 * time.Hour)),
			Author: &v1alpha1.ChangeAuthor{Username: "jane", Signal: "Audit"}, Fields: changedFields(before, after),
			Commits: []v1alpha1.ChangeCommit{{
				DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "teams", Name: "main"}, SHA: shaOf(next), Path: "x/" + key + ".yaml",
				BlobBefore: blobOf(before), BlobAfter: blobOf(after),
			}},
		},
	}}, c.changes...)
}

func blobOf(content *unstructured.Unstructured) string {
	if content == nil {
		return ""
	}
	return "b10b"
}

func (c *pastCluster) changeName(i int) string { return fmt.Sprintf("%06x-%06x", 0xffffff-i, i) }

// changedFields returns the fields of data that differ.
func changedFields(before, after *unstructured.Unstructured) (out []string) {
	if before == nil || after == nil {
		return nil
	}
	was, _, _ := unstructured.NestedMap(before.Object, "data")
	is, _, _ := unstructured.NestedMap(after.Object, "data")
	for key := range was {
		if was[key] != is[key] {
			out = append(out, "/data/"+key)
		}
	}
	for key := range is {
		if _, both := was[key]; !both {
			out = append(out, "/data/"+key)
		}
	}
	slices.Sort(out)
	return out
}

// content returns what the mirror writes of an object.
func (c *pastCluster) content(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	annotations := object.GetAnnotations()
	delete(annotations, v1alpha1.AnnotationReason)
	object.SetAnnotations(annotations)
	rules := make([]ignore.Rule, len(c.ignore))
	for i, rule := range c.ignore {
		rules[i] = ignore.Rule{Fields: rule.Fields, Managers: rule.Managers}
	}
	ignored, err := ignore.Compile(rules)
	if err != nil {
		c.t.Error(err)
	}
	content, err := manifest.Canonical(ignored.Without(object))
	if err != nil {
		c.t.Error(err)
	}
	return content.DeepCopy()
}

// put writes a ConfigMap or, with a name that begins with secret, a Secret.
func (c *pastCluster) put(name string, data map[string]string) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	resource := "configmaps"
	fields := map[string]any{}
	for key, value := range data {
		fields[key] = value
	}
	if strings.HasPrefix(name, "secret") {
		resource = "secrets"
		object.SetKind("Secret")
		for key, value := range data {
			fields[key] = base64.StdEncoding.EncodeToString([]byte(value))
		}
	}
	object.Object["data"] = fields
	object.SetName(name)
	object.SetNamespace("shop")
	if old := c.objects[resource+"/"+name]; old != nil {
		object.SetUID(old.GetUID())
		object.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	c.store(resource, object, nil)
}

func (c *pastCluster) drop(resource, name string) {
	c.store(resource, nil, c.objects[resource+"/"+name])
}

// data returns the data of an object that exists.
func (c *pastCluster) data(key string) map[string]any {
	if c.objects[key] == nil {
		return nil
	}
	data, _, _ := unstructured.NestedMap(c.objects[key].Object, "data")
	return data
}

func (c *pastCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const changes, destination = "/apis/configbutler.ai/v1alpha1/namespaces/shop/changes", "/apis/configbutler.ai/v1alpha1/namespaces/teams/gitdestinations/main/objects"
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/api":
		reply(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}}
		for _, group := range []string{"apps", "networking.k8s.io"} {
			version := metav1.GroupVersionForDiscovery{GroupVersion: group + "/v1", Version: "v1"}
			list.Groups = append(list.Groups, metav1.APIGroup{
				Name: group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
			})
		}
		reply(w, list)
	case slices.Contains([]string{"/api/v1", "/apis/apps/v1", "/apis/networking.k8s.io/v1"}, r.URL.Path):
		reply(w, resourcesOf(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")))
	case r.URL.Path == changes:
		c.listChanges(w, r)
	case strings.HasPrefix(r.URL.Path, changes+"/"):
		c.serveChange(w, path[6:])
	case r.URL.Path == destination:
		c.serveState(w, r)
	case len(path) < 5 && path[2] == "namespaces":
		c.serveObject(w, r, "namespaces", path[3:])
	case slices.Contains(path, "namespaces"):
		at := slices.Index(path, "namespaces")
		c.serveObject(w, r, path[at+2], path[at+3:])
	default:
		http.NotFound(w, r)
	}
}

func resourcesOf(version string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: version}
	for resource, kind := range kindsOfShop {
		if kind.GroupVersion().String() == version {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: resource, Kind: kind.Kind, Namespaced: resource != "namespaces", Verbs: metav1.Verbs{"get", "list"},
				ShortNames: map[string][]string{"configmaps": {"cm"}}[resource],
			})
		}
	}
	return list
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	w.WriteHeader(int(err.ErrStatus.Code))
	err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	reply(w, err.ErrStatus)
}

// listChanges filters by the field selector, and serves pages of two.
func (c *pastCluster) listChanges(w http.ResponseWriter, r *http.Request) {
	list := v1alpha1.ChangeList{TypeMeta: metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "ChangeList"}}
	var found []v1alpha1.Change
	for _, change := range c.changes {
		matches := true
		for _, term := range strings.Split(r.URL.Query().Get("fieldSelector"), ",") {
			field, value, _ := strings.Cut(term, "=")
			switch field {
			case "object.resource":
				matches = matches && change.Spec.Object.Resource == value
			case "object.name":
				matches = matches && change.Spec.Object.Name == value
			case "commit":
				matches = matches && strings.HasPrefix(change.Spec.Commits[0].SHA, value)
			}
		}
		if matches {
			found = append(found, change)
		}
	}
	at, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	list.Items = found[at:min(at+2, len(found))]
	if at+2 < len(found) {
		list.Continue = strconv.Itoa(at + 2)
	}
	reply(w, list)
}

func (c *pastCluster) serveChange(w http.ResponseWriter, path []string) {
	i := slices.IndexFunc(c.changes, func(change v1alpha1.Change) bool { return change.Name == path[0] })
	if i < 0 {
		refuse(w, apierrors.NewNotFound(v1alpha1.Resource("changes"), path[0]))
		return
	}
	change := c.changes[i]
	if len(path) == 1 {
		reply(w, change)
		return
	}
	if change.Name == c.lost {
		refuse(w, apierrors.NewConflict(v1alpha1.Resource("changes"), change.Name, fmt.Errorf("history was rewritten")))
		return
	}
	at := len(c.changes) - i
	key := change.Spec.Object.Resource + "/" + change.Spec.Object.Name
	before, after := c.states[at-1][key], c.states[at][key]
	difference := v1alpha1.ChangeDiff{
		TypeMeta: metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "ChangeDiff"}, ObjectMeta: change.ObjectMeta, Object: change.Spec.Object,
		Before: raw(masked(before)), After: raw(masked(after)), Ignore: c.ignore,
	}
	for _, field := range change.Spec.Fields {
		difference.Fields = append(difference.Fields, v1alpha1.FieldDifference{
			Field: field, ChangeType: v1alpha1.ChangeChanged, Hidden: change.Spec.Object.Resource == "secrets",
		})
	}
	reply(w, difference)
}

// masked returns an object as the server shows it.
func masked(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil || object.GetKind() != "Secret" {
		return object
	}
	object = object.DeepCopy()
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	for key := range data {
		data[key] = "MASK"
	}
	object.Object["data"] = data
	return object
}

func raw(object *unstructured.Unstructured) *runtime.RawExtension {
	if object == nil {
		return nil
	}
	text, _ := json.Marshal(object.Object)
	return &runtime.RawExtension{Raw: text}
}

// indexOf returns the index of the state that at names.
func (c *pastCluster) indexOf(at string) int {
	at, before := strings.CutSuffix(at, "^")
	index := len(c.states) - 1
	if age, err := time.ParseDuration(at); err == nil {
		index = max(0, len(c.states)-1-int(age.Hours()))
	}
	for i := range c.states {
		if len(at) >= 7 && strings.HasPrefix(shaOf(i), at) || at == "shop/"+c.changeName(i) {
			index = i
		}
	}
	if before {
		index--
	}
	return index
}

// serveState serves pages of three objects.
func (c *pastCluster) serveState(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	resource, name := query.Get("resource"), query.Get("name")
	decrypted := query.Get("secrets") == string(v1alpha1.SecretsDecrypted)
	c.requests = append(c.requests, r.URL.RawQuery)
	if decrypted && c.sealed {
		refuse(w, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", fmt.Errorf("jane may not read Secrets")))
		return
	}
	index := c.indexOf(query.Get("at"))
	list := v1alpha1.ManifestList{TypeMeta: metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "ManifestList"}, Commit: c.commitAt(index)}
	list.Unreadable, list.Ignore = c.unreadable, c.ignore
	var items []runtime.RawExtension
	for _, key := range slices.Sorted(maps.Keys(c.states[index])) {
		object := c.states[index][key]
		of, named, _ := strings.Cut(key, "/")
		group := schema.GroupResource{Group: kindsOfShop[of].Group, Resource: of}.String()
		if resource != "" && group != resource || name != "" && named != name || query.Get("namespace") != object.GetNamespace() {
			continue
		}
		if decrypted && c.withheld {
			continue
		}
		if !decrypted {
			object = masked(object)
		}
		items = append(items, *raw(object))
	}
	at, _ := strconv.Atoi(query.Get("continue"))
	list.Items = items[at:min(at+3, len(items))]
	if at+3 < len(items) {
		list.Continue = strconv.Itoa(at + 3)
	}
	reply(w, list)
}

// serveObject serves objects of the cluster as an API server does.
func (c *pastCluster) serveObject(w http.ResponseWriter, r *http.Request, resource string, path []string) {
	group := schema.GroupResource{Group: kindsOfShop[resource].Group, Resource: resource}
	if len(path) == 0 && r.Method == http.MethodGet {
		list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}}
		for key, object := range c.objects {
			if strings.HasPrefix(key, resource+"/") {
				list.Items = append(list.Items, *object)
			}
		}
		reply(w, list.UnstructuredContent())
		return
	}
	var options metav1.DeleteOptions
	if r.Method == http.MethodDelete {
		if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
			c.t.Error(err)
		}
	}
	dry := r.URL.Query().Get("dryRun") != "" || len(options.DryRun) > 0
	if r.Method != http.MethodGet && !dry && c.beforeWrite != nil {
		c.beforeWrite()
	}
	name := strings.Join(path, "")
	sent := &unstructured.Unstructured{Object: map[string]any{}}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&sent.Object); err != nil {
			c.t.Error(err)
		}
		name = sent.GetName()
	}
	if len(sent.Object) > 0 && c.validate != nil {
		if err := c.validate(sent); err != nil {
			refuse(w, err)
			return
		}
	}
	known := c.objects[resource+"/"+name]
	if r.Method != http.MethodGet && !dry && c.refuseWrite != nil {
		if err := c.refuseWrite(r.Method, name); err != nil {
			refuse(w, err)
			return
		}
	}
	switch {
	case r.Method != http.MethodPost && known == nil:
		refuse(w, apierrors.NewNotFound(group, name))
	case r.Method == http.MethodGet:
		reply(w, known.Object)
	case r.Method == http.MethodDelete:
		if p := options.Preconditions; p == nil || *p.ResourceVersion != known.GetResourceVersion() || *p.UID != known.GetUID() {
			refuse(w, apierrors.NewConflict(group, name, fmt.Errorf("precondition")))
			return
		}
		if !dry {
			c.store(resource, nil, known)
		}
		reply(w, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
	case r.Method == http.MethodPost && known != nil:
		refuse(w, apierrors.NewAlreadyExists(group, name))
	case known != nil && sent.GetResourceVersion() != known.GetResourceVersion():
		refuse(w, apierrors.NewConflict(group, name, fmt.Errorf("modified")))
	default:
		if !dry && (known == nil || !reflect.DeepEqual(known.Object, sent.Object)) {
			c.store(resource, sent, nil)
		}
		reply(w, sent.Object)
	}
}

// call runs the plugin, and returns what it prints and its exit code.
func (c *pastCluster) call(args ...string) (out, notes string, code int) {
	c.t.Helper()
	return c.callWith(c.t.Context(), args...)
}

func (c *pastCluster) callWith(ctx context.Context, args ...string) (out, notes string, code int) {
	c.t.Helper()
	streams, _, printed, noted := genericiooptions.NewTestIOStreams()
	command := app.NewCommand(streams)
	command.SetArgs(append(args, "-n", "shop", "--server", c.URL, "--kubeconfig", "/dev/null", "--cache-dir", c.t.TempDir()))
	err := command.ExecuteContext(ctx)
	if app.IsFailure(err) {
		noted.WriteString("Error: " + err.Error() + "\n")
	}
	return printed.String(), noted.String(), app.ExitCode(err)
}
