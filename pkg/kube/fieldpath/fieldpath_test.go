// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpath_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	kubefieldpath "github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

func TestPathOfManagedFields(t *testing.T) {
	item := value.NewValueInterface
	for want, path := range map[string]fieldpath.Path{
		"/spec/replicas":                          fieldpath.MakePathOrDie("spec", "replicas"),
		"/spec/containers[name=web]/image":        fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "web"), "image"),
		"/ports[port=80,protocol=TCP]":            fieldpath.MakePathOrDie("ports", fieldpath.KeyByFields("protocol", "TCP", "port", 80)),
		"/metadata/finalizers[=example.com/x]":    fieldpath.MakePathOrDie("metadata", "finalizers", item("example.com/x")),
		"/set[=1.5]":                              fieldpath.MakePathOrDie("set", item(1.5)),
		"/spec/tolerations/1":                     fieldpath.MakePathOrDie("spec", "tolerations", 1),
		"/metadata/annotations/example.com~1a~0b": fieldpath.MakePathOrDie("metadata", "annotations", "example.com/a~b"),
		`/data/"a[b]"`:                            fieldpath.MakePathOrDie("data", "a[b]"),
		`/data/""/"\"x"`:                          fieldpath.MakePathOrDie("data", "", `"x`),
		`/env[name="a,b"]`:                        fieldpath.MakePathOrDie("env", fieldpath.KeyByFields("name", "a,b")),
		`/env[name="]"]/value`:                    fieldpath.MakePathOrDie("env", fieldpath.KeyByFields("name", "]"), "value"),
		`/env[name=a=b/c]`:                        fieldpath.MakePathOrDie("env", fieldpath.KeyByFields("name", "a=b/c")),
		`/env[name=]`:                             fieldpath.MakePathOrDie("env", fieldpath.KeyByFields("name", "")),
		`/env["a=b"="\n"]`:                        fieldpath.MakePathOrDie("env", fieldpath.KeyByFields("a=b", "\n")),
		`/set[="{\"a\":[1]}"]`:                    fieldpath.MakePathOrDie("set", item(map[string]any{"a": []any{int64(1)}})),
		"/mounts[mountPath=/var/lib]":             fieldpath.MakePathOrDie("mounts", fieldpath.KeyByFields("mountPath", "/var/lib")),
		"/hosts[enabled=true,ip=::1]/names[=a]": fieldpath.MakePathOrDie("hosts", fieldpath.KeyByFields("ip", "::1", "enabled", true),
			"names", item("a")),
	} {
		got := kubefieldpath.Of(path)
		if got.String() != want {
			t.Errorf("%v is written %s, want %s", path, got, want)
		}
		read, err := kubefieldpath.Parse(got.String())
		if err != nil || !read.Equal(got) {
			t.Errorf("%s is read as %#v (%v), want %#v", got, read, err, got)
		}
	}
}

func TestParse(t *testing.T) {
	for _, wrong := range []string{
		"", "spec", "/", "/a//b", "/a~2", "/a~", "/a[", "/a[b]", "/a[b=c", "/a]",
		"/a[b=c]d", "/a[b=[c]", "/[b=c]", "/a[]", "/a[=", "/a[=b", "/a[=b,c=d]",
		"/a[b=c,]", "/a[b=c][d=e]", `/"a`, `/a["b"]`, `/a[b="c]`, `/a[b="c"d]`, `/"a"b`, `/a['b'='c'`, "/a[b=c,=d]",
	} {
		if p, err := kubefieldpath.Parse(wrong); err == nil {
			t.Errorf("%q is read as %#v", wrong, p)
		}
	}
	for text, want := range map[string]kubefieldpath.Path{
		"/a[b=c,a=d]/e": {{Field: "a"}, {Keys: []kubefieldpath.Key{{Name: "a", Text: "d"}, {Name: "b", Text: "c"}}}, {Field: "e"}},
		`/a[""=c]`:      {{Field: "a"}, {Keys: []kubefieldpath.Key{{Text: "c"}}}},
		"/a[=]":         {{Field: "a"}, {IsValue: true}},
		"/a'b`c":        {{Field: "a'b`c"}},
		`/"a/b~0"`:      {{Field: "a/b~0"}},
	} {
		got, err := kubefieldpath.Parse(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
}

func TestBeginsWith(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"/a/b", "/a"}: true, {"/a", "/a"}: true, {"/a", "/a/b"}: false,
		{"/ab", "/a"}: false, {"/a[b=c]/d", "/a[b=c]"}: true, {"/a[b=c]", "/a[b=d]"}: false,
		{"/a[=b]", "/a/b"}: false,
	} {
		a, errA := kubefieldpath.Parse(pair[0])
		b, errB := kubefieldpath.Parse(pair[1])
		if got := a.BeginsWith(b); got != want || errA != nil || errB != nil {
			t.Errorf("%s begins with %s: %v (%v, %v), want %v", a, b, got, errA, errB, want)
		}
	}
}

func TestLookup(t *testing.T) {
	object := map[string]any{
		"a": []any{map[string]any{"name": "x", "port": int64(80), "v": "1"}, map[string]any{"name": "y", "v": nil}},
		"b": []any{"p", int64(1), map[string]any{"c": 1.5}}, "0": "zero",
	}
	for text, want := range map[string]any{
		"/a[name=x,port=80]/v": "1", "/a/1/name": "y", "/b[=p]": "p", "/b[=1]": int64(1),
		`/b[="{\"c\":1.5}"]/c`: 1.5, "/0": "zero", "/a[name=y]/v": nil,
	} {
		p, err := kubefieldpath.Parse(text)
		got, ok := p.Lookup(object)
		if err != nil || !ok || !cmp.Equal(got, want) {
			t.Errorf("%s: %v %v %v, want %v", text, got, ok, err, want)
		}
	}
	for _, text := range []string{
		"/c", "/a[name=z]", "/a[name=y,port=80]", "/a/2", "/a/01", "/a/-1", "/a/name", "/b[=q]", "/0/x", "/a[name=x]/v/w",
	} {
		p, err := kubefieldpath.Parse(text)
		if got, ok := p.Lookup(object); err != nil || ok {
			t.Errorf("%s: found %v (%v)", text, got, err)
		}
	}
}

// FuzzParse reads any text: what is read is written so that it is read the same again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"/a[b=c,d=e]/f", `/"a[b]"[="x,]"]`, "/a~0b~1c/0", `/a[""="\x00"]`, "/\xff[\xff=\xff]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := kubefieldpath.Parse(text)
		if err != nil {
			return
		}
		again, err := kubefieldpath.Parse(p.String())
		if err != nil || !again.Equal(p) {
			t.Errorf("%q is read as %#v, written as %q and read as %#v (%v)", text, p, p, again, err)
		}
	})
}

// FuzzString writes any path: it is read as the same.
func FuzzString(f *testing.F) {
	f.Add("a", "b", "c", "d")
	f.Add("", "", "", "")
	f.Add("a[b]", `"`, "=", "]")
	f.Add("~1", "a,b", "`", "'\xff'")
	f.Fuzz(func(t *testing.T, field, name, text, value string) {
		p := kubefieldpath.Path{
			{Field: field}, {Keys: []kubefieldpath.Key{{Name: name, Text: text}}}, {Field: field}, {Field: value, IsValue: true},
		}
		again, err := kubefieldpath.Parse(p.String())
		if err != nil || !again.Equal(p) {
			t.Errorf("%#v is written as %q and read as %#v (%v)", p, p, again, err)
		}
	})
}
