// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// password is the value of a Secret that only those who may read it see.
const password = "open sesame"

// readingThePast reads objects as they were, and what Changes changed, as users with different permissions.
func readingThePast(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "past")
	m.Watch(t, "all", "configmaps", "secrets")
	s.Run(t, "create", "configmap", "web", "-n", "past", "--from-literal=color=red")
	m.Holds(t, m.ConfigMapPath("web"), "color: red\n")
	s.Run(t, "create", "secret", "generic", "database", "-n", "past", "--from-literal=password="+password)
	m.Holds(t, "core/v1/secrets/past/database.yaml", "sops:\n")
	s.Run(t, "patch", "configmap", "web", "-n", "past", "-p", `{"data":{"color":"blue"}}`)
	m.Holds(t, m.ConfigMapPath("web"), "color: blue\n")
	m.Settled(t)

	update := m.changeOf(t, "web", v1alpha1.ChangeUpdate)
	reader := s.reader(t, "past", "configmaps")
	if got := reader.colors(t, nil); got != "blue" {
		t.Errorf("now %q, want blue", got)
	}
	for _, at := range []string{"past/" + update.Name + "^", update.Spec.Commits[0].SHA[:10] + "^"} {
		if got := reader.colors(t, url.Values{"at": {at}}); got != "red" {
			t.Errorf("at %s %q, want red", at, got)
		}
	}
	all := reader.objects(t, nil)
	if all.Omitted == 0 || all.Commit == nil {
		t.Errorf("list of all types: %+v, want the Secret omitted", all)
	}
	reader.refused(t, url.Values{"resource": {"secrets"}, "namespace": {"past"}, "name": {"database"}}, "Forbidden")
	reader.refused(t, url.Values{"at": {"20000h"}}, "available are the states from")
	if out, err := reader.kubectl.Run(t.Context(), "get", "--raw", diffPath(m.changeOf(t, "database", v1alpha1.ChangeCreate))); err == nil {
		t.Errorf("the diff of a Secret that the user may not read: %s", out)
	}
	diff := reader.diff(t, update)
	if len(diff.Fields) != 1 || diff.Fields[0].Field != "/data/color" || *diff.Fields[0].Before != `"red"` || *diff.Fields[0].After != `"blue"` {
		t.Errorf("diff %+v", diff.Fields)
	}

	keeper := s.reader(t, "past", "secrets")
	secret := url.Values{"resource": {"secrets"}, "namespace": {"past"}, "name": {"database"}}
	masked := keeper.objects(t, secret)
	if text := string(masked.Items[0].Raw); len(masked.Items) != 1 || !strings.Contains(text, `"password":"(hidden, 8 to 15 bytes)"`) {
		t.Errorf("masked Secret: %s", text)
	}
	secret.Set("secrets", "Decrypted")
	open := keeper.objects(t, secret)
	if text := string(open.Items[0].Raw); !strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(password))) {
		t.Errorf("decrypted Secret: %s", text)
	}
	m.Intact(t)
}

// changeOf waits for a Change of an object of the namespace.
func (m *mirror) changeOf(t *testing.T, name string, operation v1alpha1.ChangeOperation) *v1alpha1.Change {
	t.Helper()
	clients := mirrortest.ClientOf(t, m.Admin(), versioned.NewForConfig)
	var found *v1alpha1.Change
	mirrortest.Eventually(t, fmt.Sprintf("the Change of %s", name), func(ctx context.Context) error {
		list, err := clients.ConfigbutlerV1alpha1().Changes(m.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "object.name=" + name + ",operation=" + string(operation),
		})
		if err != nil || len(list.Items) == 0 {
			return errors.Join(err, errors.New("there is none"))
		}
		found = &list.Items[0]
		return nil
	})
	return found
}

// pastReader is a user who may read the past, and one type now.
type pastReader struct {
	kubectl devcluster.Kubectl
	path    string
}

func (s *testCluster) reader(t *testing.T, namespace, resource string) pastReader {
	t.Helper()
	name := "reader-of-" + resource
	s.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: %[2]s}
rules:
- {apiGroups: [""], resources: [%[3]s], verbs: [get, list]}
- {apiGroups: [configbutler.ai], resources: [changes, changes/diff, gitdestinations/objects], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}
`, name, namespace, resource))
	user, err := s.User(name)
	if err != nil {
		t.Fatal(err)
	}
	return pastReader{
		kubectl: s.Kubectl(user),
		path:    "/apis/configbutler.ai/v1alpha1/namespaces/" + namespace + "/gitdestinations/main/objects",
	}
}

func (r pastReader) objects(t *testing.T, query url.Values) (list v1alpha1.ManifestList) {
	t.Helper()
	out, err := r.kubectl.Run(t.Context(), "get", "--raw", r.path+"?"+query.Encode())
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// colors returns the value color of the ConfigMap web.
func (r pastReader) colors(t *testing.T, query url.Values) string {
	t.Helper()
	for _, item := range r.objects(t, query).Items {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(item.Raw); err != nil {
			t.Fatal(err)
		}
		if color, found, _ := unstructured.NestedString(object.Object, "data", "color"); found {
			return color
		}
	}
	return ""
}

func (r pastReader) refused(t *testing.T, query url.Values, want string) {
	t.Helper()
	out, err := r.kubectl.Run(t.Context(), "get", "--raw", r.path+"?"+query.Encode())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: got %s, error %v, want %q", query, out, err, want)
	}
}

func diffPath(change *v1alpha1.Change) string {
	return "/apis/configbutler.ai/v1alpha1/namespaces/" + change.Namespace + "/changes/" + change.Name + "/diff"
}

func (r pastReader) diff(t *testing.T, change *v1alpha1.Change) (diff v1alpha1.ChangeDiff) {
	t.Helper()
	out, err := r.kubectl.Run(t.Context(), "get", "--raw", diffPath(change))
	if err == nil {
		err = json.Unmarshal([]byte(out), &diff)
	}
	if err != nil {
		t.Fatal(err)
	}
	return diff
}
