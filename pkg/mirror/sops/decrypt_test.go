// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"filippo.io/age"
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
		"extra": map[string]any{"list": []any{"x", int64(7), 1.5, true, map[string]any{"key": "y"}, nil}},
	}}
}

func encrypted(t *testing.T, object *unstructured.Unstructured, recipients ...string) []byte {
	t.Helper()
	encrypter, err := sops.NewEncrypter(bytes.Repeat([]byte{7}, sops.SeedSize), recipients)
	if err != nil {
		t.Fatal(err)
	}
	file, err := encrypter.Encrypt(object)
	if err != nil {
		t.Fatal(err)
	}
	return file
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
		got, err := sops.Decrypt(decoded(t, file), identities)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: error %v, content\n%s\nwant\n%s", name, err, got, want)
		}
	}
	for name, identities := range map[string][]age.Identity{"none": nil, "a wrong one": {newIdentity(t)}} {
		if _, err := sops.Decrypt(decoded(t, file), identities); !errors.Is(err, sops.ErrNoKey) {
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
		"no metadata":     func(o map[string]any) { o["sops"] = "none" },
		"many recipients": func(o map[string]any) { o["sops"].(map[string]any)["age"] = make([]any, 1000) },
	} {
		changed := file.DeepCopy()
		change(changed.Object)
		got, err := sops.Decrypt(changed, []age.Identity{mine})
		if err == nil {
			t.Errorf("%s: got\n%s", name, got)
			continue
		}
		if strings.Contains(err.Error(), "Zm9v") || strings.Contains(err.Error(), "shh") {
			t.Errorf("%s: error %q quotes a value", name, err)
		}
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
			"hidden", "hidden", "hidden", "hidden", map[string]any{"key": "hidden"}, nil,
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
