// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/kube/manifest/gitname"
)

func configMap(namespace, name string) Location {
	return Location{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: name}
}

func role(name string) Location {
	return Location{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Name: name}
}

func TestPath(t *testing.T) {
	const roles = "rbac.authorization.k8s.io/v1/clusterroles/"
	tests := map[string]struct {
		location Location
		want     string
	}{
		"core, namespaced":      {configMap("shop", "web"), "core/v1/configmaps/shop/web.yaml"},
		"group, cluster-scoped": {role("admin"), roles + "admin.yaml"},
		"group, namespaced": {
			Location{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web"},
			"apps/v1/deployments/shop/web.yaml",
		},
		"version of a vendor": {
			Location{Group: "sql.azure.com", Version: "v1api20211101", Resource: "servers", Namespace: "shop", Name: "db"},
			"sql.azure.com/v1api20211101/servers/shop/db.yaml",
		},
		"dots":              {role("widgets.example.com"), roles + "widgets.example.com.yaml"},
		"colon":             {role("system:node"), roles + "system%3Anode.yaml"},
		"mail address":      {role("jane@example.com"), roles + "jane@example.com.yaml"},
		"backslash":         {role(`corp\jane`), roles + "corp%5Cjane.yaml"},
		"refused on disks":  {role(`<>"|?*`), roles + "%3C%3E%22%7C%3F%2A.yaml"},
		"percent":           {role("a%3a"), roles + "a%253a.yaml"},
		"tilde":             {role("a~b"), roles + "a%7Eb.yaml"},
		"blank":             {role("a b "), roles + "a%20b%20.yaml"},
		"hidden":            {role(".git"), roles + "%2Egit.yaml"},
		"device":            {role("con"), roles + "%63on.yaml"},
		"device, extension": {role("com1.a"), roles + "%63om1.a.yaml"},
		"almost a device":   {role("console"), roles + "console.yaml"},
		"device, blank":     {role("con .a"), roles + "con%20.a.yaml"},
		"device, dollar":    {role("conin$"), roles + "conin%24.yaml"},
		"Git's own":         {role(".gitmodules"), roles + "%2Egitmodules.yaml"},
		"short name":        {role("gi7eba~1"), roles + "gi7eba%7E1.yaml"},
		"stream": {
			role(".git::$INDEX_ALLOCATION"), roles + "%2Egit%3A%3A%24INDEX_ALLOCATION~" + hashOfName(".git::$INDEX_ALLOCATION") + ".yaml",
		},
		"ignored by HFS":   {role(".g\u200cit"), roles + "%2Eg%E2%80%8Cit.yaml"},
		"device namespace": {configMap("aux", "a"), "core/v1/configmaps/%61ux/a.yaml"},
		"beyond ASCII":     {role("é"), roles + "%C3%A9.yaml"},
		"line end":         {role("a\nb"), roles + "a%0Ab.yaml"},
		"a spelled escape": {role("a%0Ab"), roles + "a%250Ab~" + hashOfName("a%0Ab") + ".yaml"},
		"tab":              {role("a\tb"), roles + "a%09b.yaml"},
		"escape sequence":  {role("esc\x1b[31m"), roles + "esc%1B%5B31m.yaml"},
		"zero at start":    {role("\x00a\x7f"), roles + "%00a%7F.yaml"},
		"C1 control":       {role("a\u0085"), roles + "a%C2%85.yaml"},
		"upper case":       {role("Admin"), roles + "Admin~" + hashOfName("Admin") + ".yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.location.Path()
			if err != nil || got != test.want {
				t.Errorf("Path() = %q, %v; want %q", got, err, test.want)
			}
			checkPath(t, test.location, got)
		})
	}
}

// checkPath proves what must hold of every path.
func checkPath(t *testing.T, location Location, relative string) {
	t.Helper()
	folder, managed := ManagedPath(relative)
	if !managed || folder != location.Folder() {
		t.Errorf("ManagedPath(%q) = %+v, %v; want %+v", relative, folder, managed, location.Folder())
	}
	if path.Clean(relative) != relative || strings.Contains(relative, "..") && !strings.Contains(location.Name, ".") {
		t.Errorf("%q is not clean", relative)
	}
	for _, segment := range strings.Split(relative, "/") {
		if len(segment) > longestSegment || gitname.IsDevice(segment) || gitname.Reserved(segment) != "" {
			t.Errorf("the segment %q cannot be checked out everywhere", segment)
		}
		for _, char := range []byte(segment) {
			if char <= ' ' || char >= 0x7f || strings.IndexByte(`\<>:"|?*`, char) >= 0 {
				t.Errorf("the segment %q holds %q", segment, char)
			}
		}
	}
}

func TestPathRefuses(t *testing.T) {
	tests := map[string]Location{
		"no name":               configMap("shop", ""),
		"this folder":           configMap("shop", "."),
		"upwards":               configMap("shop", ".."),
		"slash":                 configMap("shop", "a/b"),
		"not UTF-8":             configMap("shop", "a\xff"),
		"upwards by namespace":  configMap("..", "a"),
		"namespace with dot":    configMap("a.b", "a"),
		"upper-case namespace":  configMap("Shop", "a"),
		"long namespace":        configMap(strings.Repeat("a", 64), "a"),
		"no version":            {Resource: "configmaps", Name: "a"},
		"version without v":     {Version: "stable", Resource: "configmaps", Name: "a"},
		"upwards by resource":   {Version: "v1", Resource: "..", Name: "a"},
		"subresource":           {Version: "v1", Resource: "pods/log", Name: "a"},
		"no resource":           {Version: "v1", Name: "a"},
		"group called core":     {Group: "core", Version: "v1", Resource: "things", Name: "a"},
		"upwards by group":      {Group: "../..", Version: "v1", Resource: "things", Name: "a"},
		"empty word in a group": {Group: "a..b", Version: "v1", Resource: "things", Name: "a"},
	}
	for name, location := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := location.Path(); err == nil {
				t.Errorf("Path() = %q, want an error", got)
			}
		})
	}
}

func TestPathsDifferIgnoringCase(t *testing.T) {
	long := strings.Repeat("a", 250)
	names := []string{
		"foo", "Foo", "FOO", "fOO", "foo~", "Foo~" + hashOfName("Foo"), "foo~" + hashOfName("Foo"), "foo-" + hashOfName("Foo"),
		"a\nb", "a%0Ab", "a%0ab", "a\x1bb", "a%1bb", "A\nB",
		"a:b", "a%3Ab", "a%3ab", "A:B", "con", "CON", "Con", "%63on", "é", "É", "e\u0301", "ſ", "s", "S", "\u212a", "k", "K",
		long, long + "a", long + "b", long + "c", strings.ToUpper(long),
		strings.Repeat(":", 90), strings.Repeat(":", 91), strings.Repeat(":", 92),
		"a.yaml", "a", "a.yaml.yaml", ".a", "%2Ea", "_a",
	}
	seen := map[string]Location{}
	for _, name := range names {
		for _, location := range []Location{configMap("a", name), configMap("b", name), role(name), configMap("", name)} {
			relative, err := location.Path()
			if err != nil {
				t.Fatal(err)
			}
			checkPath(t, location, relative)
			key := strings.ToLower(relative)
			if other, taken := seen[key]; taken {
				t.Errorf("%+v and %+v share the path %q", location, other, relative)
			}
			seen[key] = location
		}
	}
}

func TestManagedPathLeavesOtherFilesAlone(t *testing.T) {
	hash := hashOfName("Web")
	foreign := []string{
		"", "README.md", "web.yaml", "core/v1/configmaps/web.yml", "core/v1/configmaps/shop/web.yaml.bak", "core/v1/configmaps/shop/web",
		"core/v1/configmaps/shop/a/web.yaml", "core/v1/web.yaml", "/core/v1/configmaps/web.yaml", "core//v1/configmaps/web.yaml",
		"core/v1/configmaps/../web.yaml", "core/v1/configmaps/./web.yaml", "core/v1/configmaps/shop/.yaml", "core/v1/configmaps/shop/..yaml",
		"Core/v1/configmaps/shop/web.yaml", "core/V1/configmaps/shop/web.yaml",
		"core/v1/ConfigMaps/shop/web.yaml", "core/v1/configmaps/Shop/web.yaml",
		"core/v1/configmaps/shop/Web.yaml", "core/v1/configmaps/shop/web~" + hash + ".yaml", "core/v1/configmaps/shop/WEB~" + hash + ".yaml",
		"core/v1/configmaps/shop/Web~.yaml", "core/v1/configmaps/shop/Web~" + hash[1:] + ".yaml",
		"core/v1/configmaps/shop/Web~~" + hash + ".yaml",
		"core/v1/configmaps/shop/a:b.yaml", "core/v1/configmaps/shop/a%3ab.yaml",
		"core/v1/configmaps/shop/a%.yaml", "core/v1/configmaps/shop/a%3.yaml",
		"core/v1/configmaps/shop/%61.yaml", "core/v1/configmaps/shop/a%2Fb.yaml",
		"core/v1/configmaps/shop/%2E%2E.yaml", "core/v1/configmaps/shop/%2E.yaml",
		"core/v1/configmaps/shop/a b.yaml", "core/v1/configmaps/shop/é.yaml",
		"core/v1/configmaps/shop/con.yaml", "core/v1/configmaps/shop/.hidden.yaml",
		"core/v1/configmaps/aux/web.yaml", "charts/web/templates/service.yaml", "apps/overlays/prod/web.yaml", ".configbutler/owner.yaml",
		"core/v1/configmaps/shop/" + strings.Repeat("a", 251) + ".yaml", "core/v1/configmaps//web.yaml", "/v1/configmaps/shop/web.yaml",
		"core/v1/configmaps/shop/a%0ab.yaml", "core/v1/configmaps/shop/a%FFb.yaml",
	}
	for _, relative := range foreign {
		if folder, managed := ManagedPath(relative); managed {
			t.Errorf("ManagedPath(%q) = %+v, want it left alone", relative, folder)
		}
	}
}

func TestLocationOf(t *testing.T) {
	obj := &unstructured.Unstructured{}
	obj.SetNamespace("shop")
	obj.SetName("web")
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	location := LocationOf(resource, obj)
	if want := (Location{"apps", "v1", "deployments", "shop", "web"}); location != want {
		t.Errorf("LocationOf() = %+v, want %+v", location, want)
	}
	if got := location.Folder().GroupVersionResource(); got != resource {
		t.Errorf("GroupVersionResource() = %v, want %v", got, resource)
	}
}

func FuzzPath(f *testing.F) {
	f.Add("", "v1", "configmaps", "shop", "web", "Web")
	f.Add("rbac.authorization.k8s.io", "v1", "roles", "aux", "system:node", "system%3Anode")
	f.Add("rbac.authorization.k8s.io", "v1", "roles", "aux", "a\nb", "a\x1bb")
	f.Add("example.com", "v1alpha1", "con", "", strings.Repeat("a", 300), strings.Repeat("a", 299)+":")
	f.Fuzz(func(t *testing.T, group, version, resource, namespace, name, other string) {
		location := Location{group, version, resource, namespace, name}
		first, err := location.Path()
		if err != nil {
			return
		}
		checkPath(t, location, first)
		location.Name = other
		second, err := location.Path()
		if err == nil && name != other && strings.EqualFold(first, second) {
			t.Errorf("%q and %q share the path %q", name, other, first)
		}
	})
}

func FuzzManagedPath(f *testing.F) {
	f.Add("core/v1/configmaps/shop/web.yaml")
	f.Add("core/v1/nodes/Web~0123456789abcdef.yaml")
	f.Fuzz(func(t *testing.T, relative string) {
		folder, managed := ManagedPath(relative)
		if !managed {
			return
		}
		prefix, err := folder.Path()
		if err != nil || path.Dir(relative) != prefix {
			t.Errorf("ManagedPath(%q) = %+v, whose path is %q, %v", relative, folder, prefix, err)
		}
	})
}

// A folder within another has no file that the outer one takes for its own, whatever its name is.
func TestFoldersWithinFoldersAreApart(t *testing.T) {
	for _, outer := range []string{"a", "v1", "core", "apps", "apps/v1", "core/v1", "core/v1/configmaps", "v1/v1/v1"} {
		for _, l := range []Location{
			{Group: "", Version: "v1", Resource: "namespaces", Name: "shop"},
			{Group: "v1.example.com", Version: "v1", Resource: "v1", Name: "v1"},
			{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "v1", Name: "web"},
		} {
			path, err := l.Path()
			if err != nil {
				t.Fatal(err)
			}
			if folder, managed := ManagedPath(outer + "/" + path); managed {
				t.Errorf("%s/%s is taken for one of %+v", outer, path, folder)
			}
		}
	}
}
