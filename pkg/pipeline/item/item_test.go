// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/configbutler/slipstream/pkg/kube/annotation/annotationtest"
)

const secret = `
apiVersion: v1
kind: Secret
metadata:
  name: login
  namespace: shop
  uid: "1"
  creationTimestamp: "2026-01-02T03:04:05Z"
  labels: {app: web}
  annotations:
    helm.sh/resource-policy: keep
    owner: team-a
    kubectl.kubernetes.io/last-applied-configuration: '{"data":{"password":"aHVudGVyMg=="}}'
  managedFields:
  - {manager: a, operation: Update, apiVersion: v1, time: "2026-02-01T00:00:00Z"}
  - {manager: b, operation: Apply, apiVersion: v1, time: "2026-02-03T00:00:00Z"}
  - {manager: c, operation: Update, apiVersion: v1, time: "2026-03-01T00:00:00Z", subresource: status}
  - {manager: d, operation: Update, apiVersion: v1}
data:
  password: aHVudGVyMg==
`

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: certificates.cert-manager.io
  uid: "2"
  creationTimestamp: "2026-01-02T03:04:05Z"
  labels: {app: cert-manager}
spec:
  group: cert-manager.io
  names: {kind: Certificate, plural: certificates}
  scope: Namespaced
  conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: Zmlyc3Q=}}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
status:
  conditions:
  - {type: NamesAccepted, status: "True"}
  - {type: Established, status: "True"}
`

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func fromSecret(t *testing.T, text string) Item {
	t.Helper()
	return FromMetadata(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, read(t, text))
}

func TestItemOfAnInstance(t *testing.T) {
	want := Item{
		Key:         Key{Instance, "v1", "Secret", "shop", "login"},
		Labels:      map[string]string{"app": "web"},
		Annotations: map[string]string{"helm.sh/resource-policy": "keep"},
		CreatedAt:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		UpdatedAt:   time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC),
		UID:         "1",
	}
	got := fromSecret(t, secret)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("item differs (-want +got):\n%s", diff)
	}
	text, err := got.Marshal()
	if err != nil || strings.Contains(string(text), "aHVudGVyMg") {
		t.Errorf("encoded item contains data: %s, %v", text, err)
	}
}

func TestMetadataAloneIsEnough(t *testing.T) {
	object := read(t, secret)
	var partial metav1.PartialObjectMetadata
	if err := yaml.Unmarshal([]byte(secret), &partial); err != nil {
		t.Fatal(err)
	}
	kind := object.GroupVersionKind()
	if diff := cmp.Diff(FromMetadata(kind, object), FromMetadata(kind, &partial)); diff != "" {
		t.Errorf("items of the object and of its metadata differ:\n%s", diff)
	}
}

func TestTimesThatAreMissing(t *testing.T) {
	object := read(t, secret)
	object.SetManagedFields(nil)
	got := FromMetadata(object.GroupVersionKind(), object)
	if got.UpdatedAt != got.CreatedAt {
		t.Errorf("updatedAt without managed fields = %s, want the time of the creation", got.UpdatedAt)
	}
	object.SetCreationTimestamp(metav1.Time{})
	got = FromMetadata(object.GroupVersionKind(), object)
	if want := time.Unix(0, 0).UTC(); got.CreatedAt != want || got.UpdatedAt != want {
		t.Errorf("times of an object without times = %s and %s, want %s", got.CreatedAt, got.UpdatedAt, want)
	}
}

// TestAnnotationsThatStay checks that items of Secrets have only annotations that are known to be harmless, and other items all except
// copies of the object.
func TestAnnotationsThatStay(t *testing.T) {
	none := map[string]bool{}
	all := map[string]bool{"Secret": true, "ConfigMap": true}
	unlessSecret := map[string]bool{"ConfigMap": true}
	for _, c := range []struct {
		keys  []string
		stays map[string]bool
	}{
		{annotationtest.Configurations(), none},
		{annotationtest.Harmless(), all},
		{annotationtest.Others(), unlessSecret},
		{
			[]string{
				"objectset.rio.cattle.io/id", "kapp.k14s.io/identity", "deployment.kubernetes.io/revision", "kubectl.kubernetes.io/restartedAt",
			},
			unlessSecret,
		},
	} {
		for _, key := range c.keys {
			for _, kind := range []string{"Secret", "ConfigMap"} {
				object := read(t, secret)
				object.SetKind(kind)
				object.SetAnnotations(map[string]string{key: "hunter2"})
				got := FromMetadata(object.GroupVersionKind(), object)
				if _, found := got.Annotations[key]; found != c.stays[kind] {
					t.Errorf("annotation %s of a %s is kept: %t, want %t", key, kind, found, c.stays[kind])
				}
				if got.Annotations != nil != c.stays[kind] {
					t.Errorf("annotations of a %s = %#v with only %s in the object", kind, got.Annotations, key)
				}
				if text, err := got.Marshal(); err != nil || strings.Contains(string(text), "hunter2") != c.stays[kind] {
					t.Errorf("encoded %s with %s = %s, %v", kind, key, text, err)
				}
			}
		}
	}
}

func TestWhatCountsAsAChangeOfAnInstance(t *testing.T) {
	for name, c := range map[string]struct {
		old, replaced string
		changes       bool
	}{
		"a label's value":             {"{app: web}", "{app: shop}", true},
		"a label more":                {"{app: web}", "{app: web, tier: front}", true},
		"no label":                    {"{app: web}", "{}", true},
		"an annotation":               {"resource-policy: keep", "resource-policy: delete", true},
		"an annotation not sent":      {"owner: team-a", "owner: team-b", false},
		"labels and annotations swap": {"labels: {app: web}", "labels: {helm.sh/resource-policy: keep}", true},
		"another object":              {`uid: "1"`, `uid: "3"`, true},
		"the creation":                {"03:04:05Z", "03:04:06Z", true},
		"what was applied":            {`"password":"aHVudGVyMg=="`, `"password":"bmV3"`, false},
		"who wrote":                   {"2026-02-03T00:00:00Z", "2026-02-04T00:00:00Z", false},
		"the data":                    {"  password: aHVudGVyMg==", "  password: bmV3", false},
	} {
		if !strings.Contains(secret, c.old) {
			t.Fatalf("%s: object lacks %q", name, c.old)
		}
		changed := fromSecret(t, strings.Replace(secret, c.old, c.replaced, 1))
		if got := changed.Digest() != fromSecret(t, secret).Digest(); got != c.changes {
			t.Errorf("%s counts as a change: %t, want %t", name, got, c.changes)
		}
	}
}

func TestNoLabelsAndEmptyLabelsAreTheSame(t *testing.T) {
	none := Item{Key: Key{Kind: Instance, Name: "a"}}
	empty := none
	empty.Labels, empty.Annotations = map[string]string{}, map[string]string{}
	if none.Digest() != empty.Digest() {
		t.Error("items without labels and with empty labels have different digests")
	}
}

func TestItemOfADefinition(t *testing.T) {
	got, established := FromCRD(read(t, definition))
	if !established {
		t.Error("definition is not established")
	}
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := Item{
		Key:       Key{CustomResourceDefinition, "", "Certificate", "", "certificates.cert-manager.io"},
		CreatedAt: created, UpdatedAt: created, UID: "2", Spec: got.Spec,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Spec == "" {
		t.Errorf("item differs (-want +got):\n%s", diff)
	}
}

func TestWhatCountsAsAChangeOfADefinition(t *testing.T) {
	before, _ := FromCRD(read(t, definition))
	for name, c := range map[string]struct {
		old, replaced string
		changes       bool
	}{
		"its schema":          {"{type: object}", "{type: object, description: A certificate}", true},
		"its served versions": {"served: true", "served: false", true},
		"another definition":  {`uid: "2"`, `uid: "4"`, true},
		"its conversion":      {"caBundle: Zmlyc3Q=", "caBundle: c2Vjb25k", false},
		"its labels":          {"{app: cert-manager}", "{app: other}", false},
		"its status":          {`{type: NamesAccepted, status: "True"}`, `{type: NamesAccepted, status: "False"}`, false},
	} {
		if !strings.Contains(definition, c.old) {
			t.Fatalf("%s: definition lacks %q", name, c.old)
		}
		changed, _ := FromCRD(read(t, strings.Replace(definition, c.old, c.replaced, 1)))
		if got := changed.Digest() != before.Digest(); got != c.changes {
			t.Errorf("%s counts as a change: %t, want %t", name, got, c.changes)
		}
	}
}

func TestDefinitionsAreLeftAsTheyAre(t *testing.T) {
	object := read(t, definition)
	FromCRD(object)
	if diff := cmp.Diff(read(t, definition).Object, object.Object); diff != "" {
		t.Errorf("definition was modified:\n%s", diff)
	}
}

func TestEstablished(t *testing.T) {
	for name, c := range map[string]struct {
		old, replaced string
		want          bool
	}{
		"established":   {"", "", true},
		"not yet":       {`{type: Established, status: "True"}`, `{type: Established, status: "False"}`, false},
		"not said":      {`  - {type: Established, status: "True"}`, "", false},
		"no conditions": {"  conditions:", "  other:", false},
	} {
		if _, got := FromCRD(read(t, strings.Replace(definition, c.old, c.replaced, 1))); got != c.want {
			t.Errorf("%s: established = %t, want %t", name, got, c.want)
		}
	}
}

func TestItemsAreReadAsTheyWereWritten(t *testing.T) {
	ofDefinition, _ := FromCRD(read(t, definition))
	for _, written := range []Item{fromSecret(t, secret), ofDefinition, {Key: Key{Kind: Instance, ObjectKind: "Pod", Name: "a"}}} {
		text, err := written.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Unmarshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(written, got); diff != "" {
			t.Errorf("decoded item of %s differs (-written +read):\n%s", text, diff)
		}
		if got.Digest() != written.Digest() {
			t.Errorf("digest of the decoded item of %s differs", text)
		}
	}
	if _, err := Unmarshal([]byte("{")); err == nil {
		t.Error("truncated item was decoded without an error")
	}
}
