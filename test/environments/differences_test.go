// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

var (
	// identity matches fields that are unique to each object.
	identity = regexp.MustCompile(`^(/metadata/(uid|resourceVersion|creationTimestamp|generation|managedFields|namespace)|/status)$`)
	// place matches fields of Services that must be unique.
	place = regexp.MustCompile(`^/spec/(clusterIP|clusterIPs/\d+|healthCheckNodePort|ports/\d+/nodePort)$`)
	// bookkeeping matches annotations that kubectl and controllers maintain.
	bookkeeping = regexp.MustCompile(`^(kubectl\.kubernetes\.io/last-applied-configuration|deployment\.kubernetes\.io/revision|` +
		`deprecated\.daemonset\.template\.generation|autoscaling\.alpha\.kubernetes\.io/.*)$`)
	// tracking matches labels and annotations by which GitOps tools find their objects.
	tracking = regexp.MustCompile(`^(argocd\.argoproj\.io/(instance|tracking-id)|kustomize\.toolkit\.fluxcd\.io/.*|meta\.helm\.sh/.*|` +
		`app\.kubernetes\.io/managed-by)$`)
)

// differences returns the fields in which a copy differs from its source, except for fields that are unique to each object and
// those that mark a copy.
func differences(e *v1alpha1.Environment, source, target *unstructured.Unstructured) []string {
	before, after := source.DeepCopy(), target.DeepCopy()
	delete(before.Object["metadata"].(map[string]any), "ownerReferences") // Copies have no owners.
	before.SetAnnotations(without(before.GetAnnotations(), bookkeeping, tracking))
	after.SetAnnotations(without(after.GetAnnotations(), bookkeeping))
	labels := without(before.GetLabels(), tracking)
	maps.Copy(labels, ownLabels(e))
	before.SetLabels(labels)
	var found []string
	compareValues("", before.Object, after.Object, func(path string, source, target any) {
		if source != nil && target != nil && place.MatchString(path) && fmt.Sprint(source) != "None" {
			return
		}
		if place.MatchString(path) && strings.Contains(path, "odePort") && text(after, "spec", "type") == "ClusterIP" {
			return // A ClusterIP Service has no node port.
		}
		if strings.HasSuffix(path, "/kubernetes.io~1metadata.name") && source == before.GetNamespace() && target == after.GetNamespace() {
			return // A policy that admits its own namespace admits the namespace of the copy.
		}
		found = append(found, fmt.Sprintf("%s: %v, copied as %v", path, source, target))
	})
	return append(found, shared(before, after)...)
}

// ownLabels returns the labels that an environment sets on its objects.
func ownLabels(e *v1alpha1.Environment) map[string]string {
	return map[string]string{
		v1alpha1.LabelEnvironment: e.Name, v1alpha1.LabelEnvironmentNamespace: e.Namespace, v1alpha1.LabelEnvironmentUID: string(e.UID),
		v1alpha1.LabelCatalog: e.Spec.CatalogRef.Name, v1alpha1.LabelRevision: fmt.Sprint(e.Status.AppliedRevision),
	}
}

// shared returns the values that two objects must not share.
func shared(a, b *unstructured.Unstructured) (found []string) {
	if a.GetUID() == b.GetUID() {
		found = append(found, "same uid")
	}
	if ip := text(a, "spec", "clusterIP"); ip != "" && ip != "None" && ip == text(b, "spec", "clusterIP") {
		found = append(found, "same cluster IP "+ip)
	}
	return found
}

// without returns the entries whose key matches none of the expressions.
func without(texts map[string]string, keys ...*regexp.Regexp) map[string]string {
	out := map[string]string{}
	for key, text := range texts {
		if !slices.ContainsFunc(keys, func(expression *regexp.Regexp) bool { return expression.MatchString(key) }) {
			out[key] = text
		}
	}
	return out
}

// withoutLabels returns an object without labels and managed fields.
func withoutLabels(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy()
	for _, field := range []string{"labels", "managedFields"} {
		unstructured.RemoveNestedField(content.Object, "metadata", field)
	}
	return content.Object
}

// compareValues calls differ for each field that differs, as deep as possible. A missing field is nil.
func compareValues(path string, a, b any, differ func(path string, a, b any)) {
	if identity.MatchString(path) {
		return
	}
	switch left := a.(type) {
	case map[string]any:
		if right, ok := b.(map[string]any); ok {
			keys := slices.AppendSeq(slices.Collect(maps.Keys(left)), maps.Keys(right))
			slices.Sort(keys)
			for _, key := range slices.Compact(keys) {
				compareValues(path+"/"+strings.ReplaceAll(key, "/", "~1"), left[key], right[key], differ)
			}
			return
		}
	case []any:
		if right, ok := b.([]any); ok && len(left) == len(right) {
			for i := range left {
				compareValues(fmt.Sprintf("%s/%d", path, i), left[i], right[i], differ)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) && !(isEmpty(a) && isEmpty(b)) {
		differ(path, a, b)
	}
}

// isEmpty reports whether a field is missing or an empty map.
func isEmpty(value any) bool {
	fields, ok := value.(map[string]any)
	return value == nil || ok && len(fields) == 0
}
