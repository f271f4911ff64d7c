// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// defaultMarks are the marks of common tools. Labels that only describe, such as helm.sh/chart, are not marks.
var defaultMarks = []string{
	"app.kubernetes.io/instance",
	"app.kubernetes.io/managed-by=Helm",
	"applyset.kubernetes.io/*",
	"argocd.argoproj.io/installation-id",
	"argocd.argoproj.io/instance",
	"argocd.argoproj.io/tracking-id",
	"config.k8s.io/owning-inventory",
	"helm.toolkit.fluxcd.io/*",
	"kapp.k14s.io/*",
	"kustomize.toolkit.fluxcd.io/*",
	"meta.helm.sh/*",
	"objectset.rio.cattle.io/*",
	"olm.owner",
	"olm.owner.kind",
	"olm.owner.namespace",
	"reconcile.external-secrets.io/*",
	"reconcile.fluxcd.io/*",
}

// Marks are the labels and annotations by which tools such as Argo CD, Flux and Helm find the objects that they own. A
// tool would adopt, change or remove a copy with its mark. The zero value has no marks.
type Marks struct{ marks []mark }

// mark is a key or a key prefix. A mark with a value matches only that value.
type mark struct {
	key      string
	isPrefix bool
	value    *string
}

// DefaultMarks returns the marks of common tools.
func DefaultMarks() Marks {
	marks, err := ParseMarks(defaultMarks...)
	if err != nil {
		panic(err) // The marks are constants.
	}
	return marks
}

// DefaultMarkTexts returns the marks of common tools in the syntax of ParseMarks.
func DefaultMarkTexts() []string { return slices.Clone(defaultMarks) }

// And returns the union of two sets of marks.
func (m Marks) And(others Marks) Marks { return Marks{slices.Concat(m.marks, others.marks)} }

// ParseMarks parses marks. Each is a key (example.com/owner), a key with a value (example.com/owner=tool) or all keys
// of a domain (example.com/*). An error names the invalid mark.
func ParseMarks(texts ...string) (Marks, error) {
	var out Marks
	for _, text := range texts {
		m, err := parseMark(text)
		if err != nil {
			return Marks{}, err
		}
		out.marks = append(out.marks, m)
	}
	return out, nil
}

func parseMark(text string) (mark, error) {
	key, value, hasValue := strings.Cut(text, "=")
	m := mark{key: key}
	if hasValue {
		m.value = &value
	}
	name := key
	if domain, ok := strings.CutSuffix(key, "/*"); ok {
		m.key, m.isPrefix, name = domain+"/", true, domain+"/any"
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 || m.isPrefix && hasValue {
		return mark{}, fmt.Errorf("mark %q must be the key of a label or an annotation, such as example.com/owner, "+
			"with its value, as in example.com/owner=tool, or all keys of a domain, as in example.com/*", text)
	}
	return m, nil
}

func (m Marks) has(key, value string) bool {
	for _, one := range m.marks {
		switch {
		case one.isPrefix:
			if strings.HasPrefix(key, one.key) {
				return true
			}
		case one.key == key && (one.value == nil || *one.value == value):
			return true
		}
	}
	return false
}
