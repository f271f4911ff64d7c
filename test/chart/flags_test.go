// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/cmd/slipstream/app"
)

// serverFlags returns a new set of all flags of the server.
func serverFlags(t testing.TB) *pflag.FlagSet {
	t.Helper()
	return app.NewCommand(t.Context()).Flags()
}

// flagsOfValues returns the flags that the chart sets from values other than flags, with the names of these values.
func flagsOfValues(t testing.TB) map[string]string {
	t.Helper()
	templates, err := template.ParseFiles(chartFile(t, "templates", "_flags.tpl"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, "slipstream.flagsOfValues", nil); err != nil {
		t.Fatal(err)
	}
	var flags map[string]string
	if err := yaml.UnmarshalStrict([]byte(text.String()), &flags); err != nil {
		t.Fatal(err)
	}
	return flags
}

// flagsOfSchema returns the properties of the value flags.
func flagsOfSchema(t testing.TB) []string {
	t.Helper()
	content, err := os.ReadFile(chartFile(t, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Flags struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(schema.Properties.Flags.Properties))
}

// arguments returns the arguments of the server.
func arguments(t testing.TB, values string) []string {
	t.Helper()
	return find[*appsv1.Deployment](t, objects(t, values), "slipstream").Spec.Template.Spec.Containers[0].Args
}

func TestSchemaHasTheFlagsOfTheServer(t *testing.T) {
	var want []string
	serverFlags(t).VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" {
			want = append(want, flag.Name)
		}
	})
	if got := flagsOfSchema(t); !slices.Equal(got, want) {
		t.Errorf("flags of the schema:\n%v\nflags of the server:\n%v", got, want)
	}
	for name, instead := range flagsOfValues(t) {
		if !slices.Contains(want, name) {
			t.Errorf("chart sets --%s from %s, but the server has no such flag", name, instead)
		}
	}
}

// Every flag that has no value of its own can be set in flags, and reaches the server unchanged.
func TestFlagsReachTheServer(t *testing.T) {
	elsewhere, flags := flagsOfValues(t), serverFlags(t)
	values, want := map[string]any{}, map[string]string{}
	serverFlags(t).VisitAll(func(flag *pflag.Flag) {
		if _, ok := elsewhere[flag.Name]; ok || flag.Name == "help" {
			return
		}
		values[flag.Name] = validValue(t, flag)
		want[flag.Name] = parsed(t, flag.Name, values[flag.Name])
	})
	document, err := yaml.Marshal(map[string]any{"flags": values})
	if err != nil {
		t.Fatal(err)
	}
	if err := flags.Parse(arguments(t, string(document))); err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		if flag := flags.Lookup(name); !flag.Changed || flag.Value.String() != text {
			t.Errorf("flags value %v: server has --%s=%s, want %s", values[name], name, flag.Value, text)
		}
	}
	if len(want) < 100 {
		t.Errorf("checked only %d flags", len(want))
	}
}

// validValue returns a valid value of the flag that is not its default.
func validValue(t *testing.T, flag *pflag.Flag) any {
	t.Helper()
	switch kind := flag.Value.Type(); kind {
	case "bool":
		return flag.DefValue != "true"
	case "int", "int64", "Level":
		return 1000007
	case "float32", "float64":
		return 0.5
	case "duration":
		return "1h1m1s"
	case "string":
		return `a "b": #c`
	case "ip":
		return "192.0.2.1"
	case "stringSlice":
		return []string{"one", "two"}
	case "int32Slice":
		return []int{23, 24}
	case "quantity":
		return "3Ki"
	case "namedCertKey":
		return []string{"/a.crt,/a.key", "/b.crt,/b.key:b.example"}
	case "colonSeparatedMultimapStringString":
		return []string{"kube:AllBeta=true", "kube:AllAlpha=true"}
	case "pattern=N,...":
		return "one=1,two=2"
	default:
		t.Fatalf("--%s has the type %s, for which this test has no value", flag.Name, kind)
		return nil
	}
}

// parsed returns the value of the flag after it was set directly.
func parsed(t *testing.T, name string, value any) string {
	t.Helper()
	items := []string{fmt.Sprint(value)}
	switch value := value.(type) {
	case []string:
		items = value
	case []int:
		items = []string{strings.Trim(strings.ReplaceAll(fmt.Sprint(value), " ", ","), "[]")}
	}
	flags := serverFlags(t)
	for _, item := range items {
		if err := flags.Set(name, item); err != nil {
			t.Fatal(err)
		}
	}
	return flags.Lookup(name).Value.String()
}

// Flags that the chart sets itself are rejected in flags, each with the name of the value to use instead.
func TestFlagsOfValuesAreRejected(t *testing.T) {
	values := map[string]any{}
	for name := range flagsOfValues(t) {
		values[name] = "x"
	}
	document, err := yaml.Marshal(map[string]any{"flags": values})
	if err != nil {
		t.Fatal(err)
	}
	output := refused(t, string(document))
	for name, instead := range flagsOfValues(t) {
		if message := fmt.Sprintf("flags.%s is rejected, because the chart sets --%s from %s\n", name, name,
			instead); !strings.Contains(output, message) {
			t.Errorf("%q is missing in\n%s", message, output)
		}
	}
}
