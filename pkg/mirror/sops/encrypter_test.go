// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

var update = flag.Bool("update", false, "write the golden file")

var seed = bytes.Repeat([]byte{7}, sops.SeedSize)

// goldenKey decrypts the golden file.
const goldenKey = "AGE-SECRET-KEY-1R0N8K72MJVS4FLSYSHTDFKRTLTFSCYHKU6CQ97SMYCPQ4M25G2QSFSVSN7"

func newIdentity(t testing.TB) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func newEncrypter(t testing.TB, seed []byte, recipients ...*age.X25519Identity) *sops.Encrypter {
	t.Helper()
	var keys []string
	for _, identity := range recipients {
		keys = append(keys, identity.Recipient().String())
	}
	encrypter, err := sops.NewEncrypter(seed, keys)
	if err != nil {
		t.Fatal(err)
	}
	return encrypter
}

// secret returns a Secret with the values. change may set more fields.
func secret(data map[string]string, change ...func(map[string]any)) *unstructured.Unstructured {
	values := map[string]any{}
	for key, value := range data {
		values[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	object := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": values,
		"metadata": map[string]any{"name": "db", "namespace": "shop", "resourceVersion": "7"},
	}
	for _, change := range change {
		change(object)
	}
	return &unstructured.Unstructured{Object: object}
}

// annotated returns a Secret with a value and the annotations.
func annotated(annotations map[string]string, change ...func(map[string]any)) *unstructured.Unstructured {
	object := secret(map[string]string{"a": "b"}, change...)
	object.SetAnnotations(annotations)
	return object
}

func numbered(n int) map[string]string {
	annotations := map[string]string{}
	for i := range n {
		annotations[fmt.Sprintf("example.com/note-%d", i)] = fmt.Sprintf("value %d", i)
	}
	return annotations
}

func set(value any, path ...string) func(map[string]any) {
	return func(object map[string]any) {
		if err := unstructured.SetNestedField(object, value, path...); err != nil {
			panic(err) // no test has such a path
		}
	}
}

func encrypt(t testing.TB, encrypter *sops.Encrypter, object *unstructured.Unstructured) []byte {
	t.Helper()
	file, err := encrypter.Encrypt(object)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// checkOpens fails the test unless sops decrypts a file to the content without encryption.
func checkOpens(t testing.TB, file []byte, key *age.X25519Identity, object *unstructured.Unstructured) {
	t.Helper()
	opened, err := sopstest.Open(t, file, key.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	found := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(opened), &found.Object); err != nil {
		t.Fatal(err)
	}
	got, err := manifest.Render(found)
	if err != nil {
		t.Fatal(err)
	}
	want, err := manifest.Render(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("decrypted file differs (-want +got):\n%s", diff)
	}
}

// objects are Secrets by their special properties.
func objects() map[string]*unstructured.Unstructured {
	return map[string]*unstructured.Unstructured{
		"one value":      secret(map[string]string{"password": "correct horse"}),
		"no values":      secret(nil),
		"an empty value": secret(map[string]string{"empty": "", "full": "x"}),
		"binary values":  secret(map[string]string{"all": string(allBytes()), "zero": "\x00"}),
		"a large value":  secret(map[string]string{"large": strings.Repeat("0123456789", 50_000)}),
		"odd keys": secret(map[string]string{
			"a.b": "1", ".dockerconfigjson": "{}", "a_b-c": "2", "true": "3", "12": "4", "null": "5", "data": "6",
		}),
		"texts": secret(nil, set("line\nline\n\n", "stringData", "block"), set("ünï©ödé 🔑", "stringData", "unicode"),
			set(" \ttabbed\r\n", "stringData", "white"), set("ENC[AES256_GCM]", "stringData", "like encrypted")),
		"other types": secret(map[string]string{"a": "b"}, set(true, "immutable"), set(int64(-7), "stringData", "int"),
			set(1.5e-7, "stringData", "float"), set(false, "stringData", "bool"), set(nil, "stringData", "null")),
		"unknown fields": secret(map[string]string{"a": "b"}, set(int64(1<<60), "extra", "int"), set(1e21, "extra", "float"),
			set(3.0, "extra", "whole"), set(true, "extra", "bool"), set("2024-01-31", "extra", "date"), set("12:30", "extra", "time"),
			set(map[string]any{}, "extra", "none")),
		"lists": secret(nil, set([]any{"one", map[string]any{"b": "2", "a": []any{"1", "0"}}, []any{}, "one"}, "stringData",
			"list"), set([]any{"example.com/keep", "example.com/more"}, "metadata", "finalizers")),
		"labels that match": secret(map[string]string{"a": "b"}, set("readable", "metadata", "labels", "team"),
			set("hidden", "metadata", "labels", "data"), set("hidden", "metadata", "annotations", "stringData")),
		"annotations": annotated(map[string]string{
			"example.com/note": "a: 'b'\n", "example.com/empty": "", "helm.sh/resource-policy": "keep", "configbutler.ai/mirror": "true",
		}),
		"annotation like type":  annotated(map[string]string{"type": "x", "helm.sh/resource-policy": "keep"}),
		"annotation like root":  annotated(map[string]string{"annotations": "x", "metadata": "y", "kind": "z"}),
		"annotation like label": annotated(map[string]string{"example.com/team": "x"}, set("platform", "metadata", "labels", "example.com/team")),
		"annotation of a regex": annotated(map[string]string{"example.com/a.b": "x", "example.com/a-b": "y", "(.*)|\\": "z"}),
		"many annotations":      annotated(numbered(40)),
		"metadata in order": secret(map[string]string{"a": "b"}, set("gen-", "metadata", "generateName"), set("x", "metadata", "labels", "z"),
			set("x\ny", "metadata", "annotations", "a")),
		"fields about it": secret(map[string]string{"a": "b"}, set("x", "aa"), set("y", "zz"), set("z", "data ")),
		"a list of metadata": secret(map[string]string{"a": "b"},
			set([]any{map[string]any{"annotations": "1", "name": "2"}}, "zz", "metadata")),
		"quotes and comments": secret(nil, set("# no comment", "stringData", "a"), set("it's \"quoted\"", "stringData", "b"),
			set("a: b", "metadata", "annotations", "note #1"), set("# neither", "metadata", "annotations", "hash")),
	}
}

func allBytes() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

func TestSopsDecrypts(t *testing.T) {
	first, second := newIdentity(t), newIdentity(t)
	encrypter := newEncrypter(t, seed, first, second)
	for name, object := range objects() {
		t.Run(name, func(t *testing.T) {
			before := object.DeepCopy()
			file := encrypt(t, encrypter, object)
			if diff := cmp.Diff(before.Object, object.Object); diff != "" {
				t.Errorf("object was modified: %s", diff)
			}
			for _, key := range []*age.X25519Identity{first, second} {
				checkOpens(t, file, key, object)
			}
		})
	}
}

func FuzzEncrypt(f *testing.F) {
	for _, text := range []string{"x", "", "\x00\xff", "line\n\n", "ünïcode", "ENC[]", "a:b", "true", "1e3"} {
		f.Add("key", text, text)
		f.Add("a.b/"+text, text, "note")
	}
	key := newIdentity(f)
	encrypter := newEncrypter(f, seed, key)
	f.Fuzz(func(t *testing.T, name, value, note string) {
		if !utf8.ValidString(name) || !utf8.ValidString(note) || name == "" {
			return // The API server accepts no such Secret.
		}
		object := secret(map[string]string{name: value}, set(note, "stringData", "text"), set(note, "metadata", "annotations", "note"),
			set(note, "metadata", "annotations", name))
		file := encrypt(t, encrypter, object)
		if again := encrypt(t, encrypter, object); !bytes.Equal(file, again) {
			t.Error("file of the same Secret differs")
		}
		checkOpens(t, file, key, object)
	})
}

// TestAlteredFilesDoNotOpen checks that changes of a file without its key are detected.
func TestAlteredFilesDoNotOpen(t *testing.T) {
	key := newIdentity(t)
	encrypter := newEncrypter(t, seed, key)
	object := secret(map[string]string{"user": "admin", "password": "correct horse"})
	file := string(encrypt(t, encrypter, object))
	other := string(encrypt(t, encrypter, secret(map[string]string{"user": "admin", "password": "battery staple"})))
	rewrite := func(old, replacement string) string {
		if !strings.Contains(file, old) {
			t.Fatalf("file lacks %q", old)
		}
		return strings.Replace(file, old, replacement, 1)
	}
	for name, altered := range map[string]string{
		"a readable value":             rewrite("name: db", "name: web"),
		"a readable value, type kept":  rewrite("type: Opaque", "type: Opaque2"),
		"an encrypted value":           rewrite("user: ENC[AES256_GCM,data:", "user: ENC[AES256_GCM,data:AAAA"),
		"a value from another version": rewrite(line([]byte(file), "password:"), line([]byte(other), "password:")),
		"a value in another's place": rewrite(line([]byte(file), "password:"),
			"  password:"+strings.TrimPrefix(line([]byte(file), "user:"), "  user:")),
		"a value taken away":            rewrite(line([]byte(file), "user:"), ""),
		"a value added":                 rewrite("kind: Secret", "kind: Secret\nmore: x"),
		"plain text":                    rewrite(line([]byte(file), "user:"), "  user: YWRtaW4=\n"),
		"the code of another version":   rewrite(line([]byte(file), "mac:"), line([]byte(other), "mac:")),
		"the time that the code covers": rewrite("1970-01-01", "1971-01-01"),
	} {
		if opened, err := sopstest.Open(t, []byte(altered), key.String()); err == nil {
			t.Errorf("%s: file was decrypted:\n%s", name, opened)
		}
	}
	if _, err := sopstest.Open(t, []byte(file), newIdentity(t).String()); err == nil {
		t.Error("file was decrypted with another key")
	}
	checkOpens(t, []byte(file), key, object)
}

// TestWhatCanBeRead checks that encrypted values are not readable, and the other fields are.
func TestWhatCanBeRead(t *testing.T) {
	object := secret(map[string]string{"password": "correct horse"}, set("battery staple", "stringData", "text"),
		set("platform", "metadata", "labels", "team"))
	file := string(encrypt(t, newEncrypter(t, seed, newIdentity(t)), object))
	for _, hidden := range []string{"correct horse", "Y29ycmVjdCBob3JzZQ", "battery"} {
		if strings.Contains(file, hidden) {
			t.Errorf("file contains %q:\n%s", hidden, file)
		}
	}
	for _, readable := range []string{
		"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: shop\n  labels:\n    team: platform\n", "\ntype: Opaque\nsops:\n",
	} {
		if !strings.Contains(file, readable) {
			t.Errorf("file lacks %q:\n%s", readable, file)
		}
	}
	if strings.Contains(file, "resourceVersion") {
		t.Error("file contains runtime fields")
	}
}

// TestSameObjectSameFile checks that equal objects have equal files, and that every encrypted line differs for other
// objects.
func TestSameObjectSameFile(t *testing.T) {
	a, b := newIdentity(t), newIdentity(t)
	data := map[string]string{"user": "admin", "password": "correct horse"}
	file := encrypt(t, newEncrypter(t, seed, a, b), secret(data))
	for name, same := range map[string][]byte{
		"again":                       encrypt(t, newEncrypter(t, slices.Clone(seed), a, b), secret(data)),
		"recipients in another order": encrypt(t, newEncrypter(t, seed, b, a), secret(data)),
		"a recipient twice":           encrypt(t, newEncrypter(t, seed, a, b, a), secret(data)),
		"a field that is runtime":     encrypt(t, newEncrypter(t, seed, a, b), secret(data, set("8", "metadata", "resourceVersion"))),
		"an annotation that is no field": encrypt(t, newEncrypter(t, seed, a, b),
			secret(data, set("x", "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"))),
	} {
		if !bytes.Equal(file, same) {
			t.Errorf("%s: file differs", name)
		}
	}
	other := bytes.Repeat([]byte{8}, sops.SeedSize)
	for name, different := range map[string][]byte{
		"one recipient less": encrypt(t, newEncrypter(t, seed, a), secret(data)),
		"another seed":       encrypt(t, newEncrypter(t, other, a, b), secret(data)),
		"another value":      encrypt(t, newEncrypter(t, seed, a, b), secret(map[string]string{"user": "admin", "password": "correct horsE"})),
		"another label":      encrypt(t, newEncrypter(t, seed, a, b), secret(data, set("x", "metadata", "labels", "team"))),
	} {
		for _, secretPart := range []string{"user:", "password:", "mac:"} {
			if line(different, secretPart) == line(file, secretPart) {
				t.Errorf("%s: line %s is the same", name, secretPart)
			}
		}
	}
}

// line returns the first line of a file with a prefix.
func line(file []byte, start string) string {
	for l := range strings.Lines(string(file)) {
		if strings.HasPrefix(strings.TrimSpace(l), start) {
			return l
		}
	}
	return ""
}

// TestFileStaysWhatItIs compares a file with the golden file. A version that changes files would cause a commit of
// every Secret in all repositories.
func TestFileStaysWhatItIs(t *testing.T) {
	identity, err := age.ParseX25519Identity(goldenKey)
	if err != nil {
		t.Fatal(err)
	}
	object := secret(map[string]string{"user": "admin", "password": "correct horse"}, set("platform", "metadata", "labels", "team"))
	file := encrypt(t, newEncrypter(t, seed, identity), object)
	const golden = "testdata/secret.yaml"
	if *update {
		if err := os.WriteFile(golden, file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(file)); diff != "" {
		t.Errorf("file differs (-want +got):\n%s", diff)
	}
	checkOpens(t, want, identity, object)
}

func TestEncryptErrors(t *testing.T) {
	encrypter := newEncrypter(t, seed, newIdentity(t))
	for name, object := range map[string]*unstructured.Unstructured{
		"no object":               nil,
		"no kind":                 secret(nil, set("", "kind")),
		"no UTF-8":                secret(nil, set("\xff", "stringData", "a")),
		"a block sops of its own": secret(nil, set("x", "sops")),
	} {
		if file, err := encrypter.Encrypt(object); err == nil {
			t.Errorf("%s: encrypted without an error:\n%s", name, file)
		} else if strings.Contains(err.Error(), "\xff") {
			t.Errorf("%s: error contains a value: %v", name, err)
		}
	}
}
