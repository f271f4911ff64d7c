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
	// identity is what each object has for itself.
	identity = regexp.MustCompile(`^(/metadata/(uid|resourceVersion|creationTimestamp|generation|managedFields|namespace)|/status)$`)
	// place is what Services have for themselves, if they have it: no two may have the same.
	place = regexp.MustCompile(`^/spec/(clusterIP|clusterIPs/\d+|healthCheckNodePort|ports/\d+/nodePort)$`)
	// bookkeeping are annotations that kubectl and controllers keep for themselves.
	bookkeeping = regexp.MustCompile(`^(kubectl\.kubernetes\.io/last-applied-configuration|deployment\.kubernetes\.io/revision|` +
		`deprecated\.daemonset\.template\.generation|autoscaling\.alpha\.kubernetes\.io/.*)$`)
	// tracking are labels and annotations by which tools of GitOps find what is theirs.
	tracking = regexp.MustCompile(`^(argocd\.argoproj\.io/(instance|tracking-id)|kustomize\.toolkit\.fluxcd\.io/.*|meta\.helm\.sh/.*|` +
		`app\.kubernetes\.io/managed-by)$`)
)

// differences are the fields in which a copy differs from its source, but for what is each one's own: that it is another
// object, of an environment and of no tool.
func differences(e *v1alpha1.Environment, source, target *unstructured.Unstructured) []string {
	before, after := source.DeepCopy(), target.DeepCopy()
	delete(before.Object["metadata"].(map[string]any), "ownerReferences") // A copy has none.
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
			return // A Service that is reached from within only has no port of a node.
		}
		if strings.HasSuffix(path, "/kubernetes.io~1metadata.name") && source == before.GetNamespace() && target == after.GetNamespace() {
			return // Where a policy admits its own namespace, it admits that of the copy.
		}
		found = append(found, fmt.Sprintf("%s: %v, copied as %v", path, source, target))
	})
	return append(found, shared(before, after)...)
}

// ownLabels are those by which an environment knows what it has written.
func ownLabels(e *v1alpha1.Environment) map[string]string {
	return map[string]string{
		v1alpha1.LabelEnvironment: e.Name, v1alpha1.LabelEnvironmentNamespace: e.Namespace, v1alpha1.LabelEnvironmentUID: string(e.UID),
		v1alpha1.LabelCatalog: e.Spec.CatalogRef.Name, v1alpha1.LabelRevision: fmt.Sprint(e.Status.AppliedRevision),
	}
}

// shared are what two objects may not both have.
func shared(a, b *unstructured.Unstructured) (found []string) {
	if a.GetUID() == b.GetUID() {
		found = append(found, "it is the same object")
	}
	if ip := text(a, "spec", "clusterIP"); ip != "" && ip != "None" && ip == text(b, "spec", "clusterIP") {
		found = append(found, "both have the address "+ip)
	}
	return found
}

// without returns what has none of the keys.
func without(texts map[string]string, keys ...*regexp.Regexp) map[string]string {
	out := map[string]string{}
	for key, text := range texts {
		if !slices.ContainsFunc(keys, func(expression *regexp.Regexp) bool { return expression.MatchString(key) }) {
			out[key] = text
		}
	}
	return out
}

// withoutLabels is an object without what says whose it is.
func withoutLabels(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy()
	for _, field := range []string{"labels", "managedFields"} {
		unstructured.RemoveNestedField(content.Object, "metadata", field)
	}
	return content.Object
}

// compareValues calls back for each field that differs, as deep down as possible. nil is one that is not there.
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

// isEmpty says whether a field is not there, or a map without anything in it.
func isEmpty(value any) bool {
	fields, ok := value.(map[string]any)
	return value == nil || ok && len(fields) == 0
}
