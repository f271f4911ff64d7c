// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/annotation"
	"github.com/configbutler/slipstream/pkg/kube/annotation/annotationtest"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

// hidden are the representations of a value that must not be in the file of a Secret.
func hidden(t *testing.T, value string) []string {
	t.Helper()
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return []string{value, base64.StdEncoding.EncodeToString([]byte(value)), strings.Trim(string(quoted), `"`)}
}

// TestAnnotationsAreNotReadable checks that values of a Secret in its annotations are encrypted.
func TestAnnotationsAreNotReadable(t *testing.T) {
	const value = `cor"rect <horse>`
	key := newIdentity(t)
	encrypter := newEncrypter(t, seed, key)
	copied, err := json.Marshal(secret(map[string]string{"password": value}, set(value, "stringData", "text")).Object)
	if err != nil {
		t.Fatal(err)
	}
	keys := slices.Concat(annotationtest.Configurations(), annotationtest.Others(), []string{
		"name", "kind", "type", "labels", "metadata", "annotations", "data", "sops", "apiVersion", "example.com/team",
	})
	for _, name := range keys {
		t.Run(name, func(t *testing.T) {
			object := secret(map[string]string{"password": value}, set("platform", "metadata", "labels", "example.com/team"),
				set("shop", "metadata", "labels", "app"))
			object.SetAnnotations(map[string]string{
				name: string(copied), "example.com/plain": value,
				"example.com/encoded": base64.StdEncoding.EncodeToString([]byte(value)), "helm.sh/resource-policy": "keep",
			})
			file := encrypt(t, encrypter, object)
			for _, text := range hidden(t, value) {
				if strings.Contains(string(file), text) {
					t.Errorf("file contains %q:\n%s", text, file)
				}
			}
			for _, readable := range []string{
				"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: shop\n  labels:\n    app: shop\n    example.com/team: platform\n",
				"\ntype: Opaque\n",
			} {
				if !strings.Contains(string(file), readable) {
					t.Errorf("file lacks %q:\n%s", readable, file)
				}
			}
			checkOpens(t, file, key, object)
		})
	}
}

// TestOnlyWhatIsHarmlessIsReadable checks that only listed fields and annotations of a Secret are readable, and unknown
// fields are encrypted.
func TestOnlyWhatIsHarmlessIsReadable(t *testing.T) {
	annotations := map[string]string{"example.com/note": "secret words"}
	for _, key := range annotationtest.Harmless() {
		annotations[key] = "open words"
	}
	object := annotated(annotations,
		set("open-", "metadata", "generateName"), set("open", "metadata", "labels", "team"), set(true, "immutable"),
		set([]any{"secret.example.com/words"}, "metadata", "finalizers"), set("secret words", "metadata", "unknown"),
		set("secret words", "unknown"), set(map[string]any{"name": "secret words"}, "other"))
	key := newIdentity(t)
	file := encrypt(t, newEncrypter(t, seed, key), object)
	if strings.Contains(string(file), "secret words") || strings.Contains(string(file), "secret.example.com") {
		t.Errorf("file contains a value:\n%s", file)
	}
	var fields struct {
		Immutable bool
		Metadata  struct {
			GenerateName        string
			Labels, Annotations map[string]string
		}
	}
	if err := yaml.Unmarshal(file, &fields); err != nil {
		t.Fatal(err)
	}
	if !fields.Immutable || fields.Metadata.GenerateName != "open-" || fields.Metadata.Labels["team"] != "open" {
		t.Errorf("harmless field is encrypted:\n%s", file)
	}
	for name, text := range fields.Metadata.Annotations {
		if annotation.IsHarmless(name) != (text == "open words") {
			t.Errorf("annotation %s = %q", name, text)
		}
	}
	checkOpens(t, file, key, object)
}

// TestRulesNameTheAnnotationsThatAreEncrypted checks the rules of files. Kustomize, and Flux with it, adds annotations
// before decryption, which must not count as encrypted.
func TestRulesNameTheAnnotationsThatAreEncrypted(t *testing.T) {
	encrypter := newEncrypter(t, seed, newIdentity(t))
	listed := numbered(16)
	for name, tt := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"none":           {nil, "^(data|stringData)$"},
		"a harmless one": {map[string]string{"helm.sh/resource-policy": "keep"}, "^(data|stringData)$"},
		"others": {
			map[string]string{"example.com/b": "", "a": "", "helm.sh/resource-policy": "keep"}, `^(data|stringData|a|example\.com/b)$`,
		},
		"one like a field":    {map[string]string{"example.com/b": "", "name": ""}, "^(data|stringData|annotations)$"},
		"one like the data":   {map[string]string{"data": ""}, "^(data|stringData)$"},
		"one with the object": {map[string]string{"kapp.k14s.io/original": "{}"}, "^(data|stringData)$"},
		"as many as are listed": {
			listed, `^(data|stringData|` + strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(listed)), "|"), ".", `\.`) + ")$",
		},
		"more than are listed": {numbered(17), "^(data|stringData|annotations)$"},
	} {
		var fields struct {
			SOPS struct {
				Rule string `json:"encrypted_regex"`
			}
		}
		if err := yaml.Unmarshal(encrypt(t, encrypter, annotated(tt.annotations)), &fields); err != nil {
			t.Fatal(err)
		}
		if fields.SOPS.Rule != tt.want {
			t.Errorf("%s: rule = %s, want %s", name, fields.SOPS.Rule, tt.want)
		}
	}
}

// TestFluxDecrypts checks that Flux can decrypt the file after Kustomize has changed it.
func TestFluxDecrypts(t *testing.T) {
	key := newIdentity(t)
	encrypter := newEncrypter(t, seed, key)
	none, added := map[string]string{}, map[string]string{"config.kubernetes.io/origin": "path: db.yaml\n"}
	for name, tt := range map[string]struct {
		annotations, added map[string]string
	}{
		"no annotations":          {nil, none},
		"annotations":             {map[string]string{"example.com/note": "x", "helm.sh/resource-policy": "keep"}, none},
		"all are encrypted":       {map[string]string{"name": "x", "helm.sh/resource-policy": "keep"}, none},
		"Kustomize adds some":     {map[string]string{"example.com/note": "x", "helm.sh/resource-policy": "keep"}, added},
		"Kustomize adds the only": {nil, added},
	} {
		t.Run(name, func(t *testing.T) {
			object := annotated(tt.annotations, set([]any{"example.com/keep"}, "metadata", "finalizers"), set(true, "immutable"))
			opened, err := sopstest.OpenAsFlux(t, encrypt(t, encrypter, object), key.String(), tt.added)
			if err != nil {
				t.Fatal(err)
			}
			found := &unstructured.Unstructured{}
			if err := found.UnmarshalJSON([]byte(opened)); err != nil {
				t.Fatal(err)
			}
			want := object.DeepCopy()
			all := maps.Clone(tt.added)
			maps.Copy(all, tt.annotations)
			want.SetAnnotations(all)
			unstructured.RemoveNestedField(want.Object, "metadata", "resourceVersion")
			if diff := cmp.Diff(want.Object, found.Object); diff != "" {
				t.Errorf("decrypted file differs (-want +got):\n%s", diff)
			}
		})
	}
	object := annotated(map[string]string{"name": "x"})
	if opened, err := sopstest.OpenAsFlux(t, encrypt(t, encrypter, object), key.String(), added); err == nil {
		t.Errorf("annotations added by Kustomize do not count as encrypted if all annotations are encrypted, "+
			"unlike the page on Secrets says:\n%s", opened)
	}
}
