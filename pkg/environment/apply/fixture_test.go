// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/environment/apply"
)

// cluster implements the part of the API server's protocol that appliers use.
type cluster struct {
	*httptest.Server
	mu      sync.Mutex
	objects map[string]map[string]any
	version int
	// takeRequests returns the requests since the last call.
	requests []string
	// answer, if set, can respond in place of the cluster. It may change objects.
	answer func(request string) *metav1.Status
}

func newCluster(t *testing.T, objects ...*unstructured.Unstructured) *cluster {
	t.Helper()
	c := &cluster{objects: map[string]map[string]any{}, version: 100}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	c.put(object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: twin}}"))
	for _, o := range objects {
		c.put(o)
	}
	return c
}

// put stores an object as a new one.
func (c *cluster) put(o *unstructured.Unstructured) *unstructured.Unstructured {
	c.version++
	stored := o.DeepCopy()
	if o.GetUID() == "" {
		stored.SetUID(types.UID(strconv.Itoa(c.version)))
	}
	stored.SetResourceVersion(strconv.Itoa(c.version))
	c.objects[resourceOf(o)+"/"+o.GetName()] = stored.Object
	return stored.DeepCopy()
}

func resourceOf(o *unstructured.Unstructured) string { return strings.ToLower(o.GetKind()) + "s" }

// live returns a stored object.
func (c *cluster) live(name string) *unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (&unstructured.Unstructured{Object: c.objects[name]}).DeepCopy()
}

func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	name := strings.Join(parts[len(parts)-2:], "/")
	if r.Method == http.MethodPost || parts[len(parts)-1] == "resourcequotas" {
		name = parts[len(parts)-1]
	}
	request := r.Method + " " + name
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	dry := r.URL.Query().Get("dryRun") == metav1.DryRunAll || r.Method == http.MethodDelete &&
		strings.Contains(string(body), `"dryRun":["All"]`)
	if dry {
		request = "dry " + request
	}
	c.requests = append(c.requests, request)
	code, answer := c.respond(r, request, name, body, dry)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

func (c *cluster) respond(r *http.Request, request, name string, body []byte, dry bool) (int, any) {
	if c.answer != nil {
		if status := c.answer(request); status != nil {
			return int(status.Code), status
		}
	}
	there, exists := c.objects[name]
	switch {
	case r.Method == http.MethodPost:
		return http.StatusCreated, decode(body).Object
	case strings.HasSuffix(name, "resourcequotas"):
		return http.StatusOK, c.list("resourcequotas")
	case r.Method == http.MethodPatch && r.Header.Get("Content-Type") == "application/apply-patch+yaml":
		return c.apply(name, decode(body), dry)
	case !exists:
		return http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound, name+" not found")
	case r.Method == http.MethodDelete && !dry:
		delete(c.objects, name)
		return http.StatusOK, metav1.Status{Status: metav1.StatusSuccess}
	}
	return http.StatusOK, there
}

func (c *cluster) list(resource string) any {
	items := []any{}
	for _, name := range slices.Sorted(maps.Keys(c.objects)) {
		if strings.HasPrefix(name, resource+"/") {
			items = append(items, c.objects[name])
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "ResourceQuotaList", "items": items}
}

// apply replaces a stored object if the preconditions in the applied one hold.
func (c *cluster) apply(name string, o *unstructured.Unstructured, dry bool) (int, any) {
	there := &unstructured.Unstructured{Object: c.objects[name]}
	if there.Object == nil && o.GetUID() != "" || there.Object != nil && o.GetResourceVersion() != "" &&
		o.GetResourceVersion() != there.GetResourceVersion() {
		return http.StatusConflict, status(http.StatusConflict, metav1.StatusReasonConflict, name+" has been modified")
	}
	if dry {
		return http.StatusOK, o.Object
	}
	return http.StatusOK, c.put(o).Object
}

func status(code int, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message, Details: &metav1.StatusDetails{Causes: causes},
	}
}

// takeRequests returns the requests since the last call.
func (c *cluster) takeRequests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

func decode(body []byte) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &o.Object); err != nil {
		panic(err)
	}
	return o
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func configMap(t testing.TB, name, value string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: twin}, data: {key: %q}}", name, value))
}

func (c *cluster) applier(t testing.TB) *apply.Applier {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: c.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &apply.Applier{
		Client: client, Mapper: testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme), Manager: "slipstream",
		Limiter: flowcontrol.NewFakeAlwaysRateLimiter(), Concurrency: 4,
	}
}

var twin = apply.Target{Namespace: "twin"}

// run executes steps and expects a clean report.
func (c *cluster) run(t *testing.T, steps ...apply.Step) apply.Report {
	t.Helper()
	report, err := c.applier(t).Apply(t.Context(), twin, steps, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// lines returns the refusals and conflicts of a report.
func lines(report apply.Report) []string {
	out := []string{}
	for _, refusal := range report.Refusals {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s: %s", refusal.Object, refusal.Field, refusal.Message)))
	}
	for _, conflict := range report.Conflicts {
		out = append(out, conflict.Message)
	}
	return out
}
