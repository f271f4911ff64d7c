// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environmenttest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

// The namespaces of the environment and its catalog, of the source and of the target.
const (
	Teams      = "teams"
	Production = "production"
	Target     = "shop-alice"
)

// Deployment returns the manifest of a Deployment whose container has the image name:1 and further fields, such as an envFrom.
func Deployment(name, fields string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: %[1]s, image: "%[1]s:1"%[2]s}]}
`, name, strings.TrimSuffix(", "+fields, ", "))
}

// Environment returns an environment of the catalog shop.
func Environment() *v1alpha1.Environment {
	return &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: "alice", Namespace: Teams, UID: "11111111-1111-1111-1111-111111111111"},
		Spec: v1alpha1.EnvironmentSpec{
			CatalogRef: v1alpha1.ObjectReference{Name: "shop"}, TargetNamespace: Target, Type: v1alpha1.EnvironmentShared,
			Adapt: v1alpha1.Adaptation{IngressHosts: v1alpha1.IngressHosts{
				Type: v1alpha1.IngressHostsTemplate, Template: "{label}.{environment}.dev.example.com",
			}},
		},
		Status: v1alpha1.EnvironmentStatus{CatalogUID: CatalogUID},
	}
}

// CatalogUID is the UID of the catalog shop.
const CatalogUID = "22222222-2222-2222-2222-222222222222"

// Catalog returns a catalog of production that offers nothing yet.
func Catalog() *v1alpha1.AppCatalog {
	return &v1alpha1.AppCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: Teams, UID: CatalogUID},
		Spec:       v1alpha1.AppCatalogSpec{SourceNamespace: Production},
		Status:     v1alpha1.AppCatalogStatus{Revision: 1},
	}
}

// Offer has a catalog offer a workload, and returns the CatalogWorkload.
func Offer(t testing.TB, of *v1alpha1.AppCatalog, workload *unstructured.Unstructured) *v1alpha1.CatalogWorkload {
	t.Helper()
	content, err := capture.Render(&of.Spec, workload)
	if err != nil {
		t.Fatal(err)
	}
	kind := v1alpha1.WorkloadKind(workload.GetKind())
	entry := v1alpha1.CatalogEntry{Kind: kind, Name: workload.GetName(), Revision: of.Status.Revision, Hash: content.Hash}
	of.Status.Workloads = slices.DeleteFunc(of.Status.Workloads, func(e v1alpha1.CatalogEntry) bool {
		return e.Kind == entry.Kind && e.Name == entry.Name
	})
	of.Status.Workloads = append(of.Status.Workloads, entry)
	return &v1alpha1.CatalogWorkload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: v1alpha1.CatalogWorkloadName(of.Name, kind, workload.GetName()),
			Labels:          map[string]string{v1alpha1.LabelCatalog: of.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, v1alpha1.SchemeGroupVersion.WithKind("AppCatalog"))},
		},
		Status: v1alpha1.CatalogWorkloadRecord{
			Kind: kind, Name: workload.GetName(), Revision: of.Status.Revision, Hash: content.Hash,
			Manifest: &runtime.RawExtension{Raw: content.Raw.Raw},
		},
	}
}

// schemas are the schemas of client-go. They are parsed once for all planners.
var schemas = diff.NewSchemas(nil, clock.RealClock{})

// Planner returns a planner with the schemas of client-go.
func Planner() plan.Planner {
	return plan.Planner{Schemas: schemas, Hasher: hasher{}, Marks: objectcopy.DefaultMarks()}
}

// hasher is a Hasher without a key.
type hasher struct{}

func (hasher) Sum(purpose string, parts ...[]byte) string {
	sum := sha256.Sum256([]byte("key" + purpose + string(slices.Concat(parts...))))
	return hex.EncodeToString(sum[:])
}
