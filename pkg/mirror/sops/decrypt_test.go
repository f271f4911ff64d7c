// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

// decoded returns the content of a file.
func decoded(t *testing.T, file []byte) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// manifold is a Secret with values of all types at places of all kinds.
func manifold() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "labels": map[string]any{"app": "web"},
			"annotations": map[string]any{"example.com/token": "shh", "argocd.argoproj.io/sync-wave": "1"},
		},
		"data":  map[string]any{"b": "Zm9v", "a": "", "c": "multi\nline\n"},
		"extra": map[string]any{"list": []any{"x", int64(7), 1.5, 2.0, 1e30, true, map[string]any{"key": "y"}, nil}},
	}}
}

func encrypted(t *testing.T, object *unstructured.Unstructured, recipients ...string) []byte {
	t.Helper()
	encrypter, err := sops.NewEncrypter(seed, recipients)
	if err != nil {
		t.Fatal(err)
	}
	file, err := encrypter.Encrypt(object)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func opener(identities ...age.Identity) *sops.Opener {
	return &sops.Opener{Identities: identities, Seed: seed}
}

func TestDecrypt(t *testing.T) {
	mine, other := newIdentity(t), newIdentity(t)
	want, err := manifest.Render(manifold())
	if err != nil {
		t.Fatal(err)
	}
	file := encrypted(t, manifold(), mine.Recipient().String(), other.Recipient().String())
	for name, identities := range map[string][]age.Identity{
		"one": {mine}, "another": {other}, "the second of two": {newIdentity(t), mine},
	} {
		got, err := opener(identities...).Decrypt(decoded(t, file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: error %v, content\n%s\nwant\n%s", name, err, got, want)
		}
	}
	for name, identities := range map[string][]age.Identity{"none": nil, "a wrong one": {newIdentity(t)}} {
		if _, err := opener(identities...).Decrypt(decoded(t, file)); !errors.Is(err, sops.ErrNoKey) {
			t.Errorf("%s: error %v, want ErrNoKey", name, err)
		}
	}
}

// TestDecryptRefusesChangedFiles changes a file in ways that must not go unnoticed.
func TestDecryptRefusesChangedFiles(t *testing.T) {
	mine := newIdentity(t)
	file := decoded(t, encrypted(t, manifold(), mine.Recipient().String()))
	for name, change := range map[string]func(o map[string]any){
		"a readable value": func(o map[string]any) { o["type"] = "other" },
		"a removed value":  func(o map[string]any) { delete(o["data"].(map[string]any), "b") },
		"values swapped": func(o map[string]any) {
			data := o["data"].(map[string]any)
			data["b"], data["c"] = data["c"], data["b"]
		},
		"a plain value": func(o map[string]any) { o["data"].(map[string]any)["b"] = "Zm9v" },
		"a short nonce": func(o map[string]any) {
			o["data"].(map[string]any)["b"] = "ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]"
		},
		"no code":         func(o map[string]any) { delete(o["sops"].(map[string]any), "mac") },
		"no rule":         func(o map[string]any) { delete(o["sops"].(map[string]any), "encrypted_regex") },
		"a wrong rule":    func(o map[string]any) { o["sops"].(map[string]any)["encrypted_regex"] = "(" },
		"a long rule":     func(o map[string]any) { o["sops"].(map[string]any)["encrypted_regex"] = strings.Repeat("a", 1<<20) },
		"a pattern":       func(o map[string]any) { o["sops"].(map[string]any)["encrypted_regex"] = "^(data|.*)$" },
		"a plain number":  func(o map[string]any) { o["data"].(map[string]any)["b"] = int64(1) },
		"more metadata":   func(o map[string]any) { o["sops"].(map[string]any)["pgp"] = []any{} },
		"no metadata":     func(o map[string]any) { o["sops"] = "none" },
		"many recipients": func(o map[string]any) { o["sops"].(map[string]any)["age"] = make([]any, 1000) },
	} {
		changed := file.DeepCopy()
		change(changed.Object)
		got, err := opener(mine).Decrypt(changed)
		if err == nil {
			t.Errorf("%s: got\n%s", name, got)
			continue
		}
		if strings.Contains(err.Error(), "Zm9v") || strings.Contains(err.Error(), "shh") {
			t.Errorf("%s: error %q quotes a value", name, err)
		}
	}
}

// TestDecryptRefusesForgedFiles moves values of files that the Encrypter has written. The code of SOPS allows all of it.
func TestDecryptRefusesForgedFiles(t *testing.T) {
	mine := newIdentity(t)
	victim := secret(map[string]string{"password": "open sesame"})
	victim.SetName("db")
	victim.SetNamespace("shop-prod")
	victim.SetLabels(nil)
	victim.SetAnnotations(nil)
	file := decoded(t, encrypt(t, newEncrypter(t, seed, mine), victim))
	if _, err := opener(mine).Decrypt(file); err != nil {
		t.Fatal(err)
	}
	for name, metadata := range map[string]map[string]any{
		"unknown field": {"name": "db", "namespace": "shop", "x": "-prod"},
		"label":         {"name": "db", "namespace": "shop", "labels": map[string]any{"x": "-prod"}},
		"shifted":       {"name": "dbs", "namespace": "hop-prod"},
		"finalizers":    {"name": "db", "namespace": "shop", "finalizers": []any{"-prod"}},
	} {
		forged := file.DeepCopy()
		forged.Object["metadata"] = metadata
		if got, err := opener(mine).Decrypt(forged); err == nil || got != nil || errors.Is(err, sops.ErrForeign) != (name != "unknown field") {
			t.Errorf("%s: error %v, content\n%s", name, err, got)
		}
	}
	for name, other := range map[string][]byte{"another seed": bytes.Repeat([]byte{8}, sops.SeedSize), "no seed": nil} {
		if _, err := (&sops.Opener{Identities: []age.Identity{mine}, Seed: other}).Decrypt(file); !errors.Is(err, sops.ErrForeign) {
			t.Errorf("%s: error %v, want ErrForeign", name, err)
		}
	}
}

// TestDecryptKeepsWhatIsLeftOutToday opens a file with fields that an earlier version did not leave out.
func TestDecryptKeepsWhatIsLeftOutToday(t *testing.T) {
	mine, object := newIdentity(t), manifold()
	object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "example.com/token": "shh"})
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "1"}})
	file, want, err := newEncrypter(t, seed, mine).EncryptVerbatim(object)
	if err != nil || !strings.Contains(string(want), "last-applied-configuration") {
		t.Fatalf("%v\n%s", err, want)
	}
	if got, err := opener(mine).Decrypt(decoded(t, file)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("error %v, content\n%s\nwant\n%s", err, got, want)
	}
}

// TestDecryptManyKeys opens a file with as many annotations, and as long ones, as a rule lists.
func TestDecryptManyKeys(t *testing.T) {
	mine, object := newIdentity(t), manifold()
	annotations := map[string]string{}
	for i := range 16 {
		annotations[strings.Repeat("a.", 126)+"a/"+strings.Repeat("b", 61)+fmt.Sprint(10+i)] = "x"
	}
	object.SetAnnotations(annotations)
	if _, err := opener(mine).Decrypt(decoded(t, encrypted(t, object, mine.Recipient().String()))); err != nil {
		t.Error(err)
	}
}

func TestMask(t *testing.T) {
	masked := sops.Mask(manifold().Object, func([]string, any) any { return "hidden" })
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "labels": map[string]any{"app": "web"},
			"annotations": map[string]any{"example.com/token": "hidden", "argocd.argoproj.io/sync-wave": "1"},
		},
		"data": map[string]any{"b": "hidden", "a": "hidden", "c": "hidden"},
		"extra": map[string]any{"list": []any{
			"hidden", "hidden", "hidden", "hidden", "hidden", "hidden", map[string]any{"key": "hidden"}, nil,
		}},
	}}
	got, err := json.Marshal(masked)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := json.Marshal(want.Object)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, wanted) {
		t.Errorf("got\n%s\nwant\n%s", got, wanted)
	}
	file := decoded(t, encrypted(t, manifold(), newIdentity(t).Recipient().String()))
	if again, err := json.Marshal(sops.Mask(file.Object, func([]string, any) any { return "hidden" })); err != nil || !bytes.Equal(again, wanted) {
		t.Errorf("of the encrypted file (%v): got\n%s\nwant\n%s", err, again, wanted)
	}
}
