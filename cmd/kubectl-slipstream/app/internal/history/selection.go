// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// selection are the objects that a command is about.
type selection struct {
	// objects are named ones. If there are none, kind, namespace and labels select.
	objects   []objectRef
	kind      objectRef
	namespace string
	labels    string
}

// selected parses the arguments of a command: objects as TYPE/NAME, or a type, or none for all of the namespace.
func (s *session) selected(args []string, labelSelector string) (*selection, error) {
	sel := &selection{namespace: s.namespace, labels: labelSelector}
	if _, err := labels.Parse(labelSelector); err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	for _, arg := range args {
		of, err := pastObject(s.config, arg)
		if err != nil {
			return nil, err
		}
		if of.name == "" && len(args) > 1 {
			return nil, fmt.Errorf("%s: write each object as TYPE/NAME", arg)
		}
		if of.name == "" {
			sel.kind = of
			continue
		}
		sel.objects = append(sel.objects, of)
	}
	if len(sel.objects) > 0 && labelSelector != "" {
		return nil, errors.New("--selector selects objects of a type or namespace: leave out either the names or --selector")
	}
	return sel, nil
}

// pastObject parses TYPE or TYPE/NAME. A type that the cluster does not serve any more can be named with its group, as in
// widgets.example.com/a.
func pastObject(config genericclioptions.RESTClientGetter, arg string) (objectRef, error) {
	of, err := objectArgument(config, []string{arg})
	var unknown *meta.NoResourceMatchError
	if !errors.As(err, &unknown) {
		return of, err
	}
	kind, name, _ := strings.Cut(arg, "/")
	resource := schema.ParseGroupResource(kind)
	if resource.Group == "" || name == "" {
		return of, err
	}
	return objectRef{resource: resource, name: name, unserved: true}, nil
}

// queries returns what is asked of a destination.
func (sel *selection) queries() []v1alpha1.ManifestOptions {
	if len(sel.objects) == 0 {
		query := v1alpha1.ManifestOptions{Namespace: sel.namespace, Resource: sel.kind.resource.String(), LabelSelector: sel.labels}
		if sel.kind.clusterScoped {
			query.Namespace = ""
		}
		return []v1alpha1.ManifestOptions{query}
	}
	var out []v1alpha1.ManifestOptions
	for _, of := range sel.objects {
		query := v1alpha1.ManifestOptions{Namespace: sel.namespace, Resource: of.resource.String(), Name: of.name}
		if of.clusterScoped {
			query.Namespace = ""
		}
		out = append(out, query)
	}
	return out
}

// changeName matches the names that the server gives to Changes.
var changeName = regexp.MustCompile("^[0-9a-f]+-[0-9a-f]+$")

// at returns a point in time as destinations read it: the name of a Change gets its namespace.
func (s *session) at(flag, text string) (string, error) {
	base, before := strings.CutSuffix(text, "^")
	_, notATime := time.Parse(time.RFC3339, base)
	age, notAnAge := cli.ParseDuration(base)
	if _, err := time.ParseDuration(base); err != nil && notAnAge == nil && !before {
		text = age.String() // The server knows no days.
	}
	switch {
	case abbreviated.MatchString(base):
		return text, nil
	case notAnAge == nil && age < 0:
		return "", fmt.Errorf("%s is %s: a time ago is a duration such as 90m", flag, text)
	case (notATime == nil || notAnAge == nil) && before:
		return "", fmt.Errorf("%s is %s: only a commit or Change may be followed by ^", flag, text)
	case notATime == nil || notAnAge == nil || strings.Count(base, "/") == 1:
		return text, nil
	case changeName.MatchString(base):
		return s.namespace + "/" + text, nil
	}
	return "", fmt.Errorf("%s is %q: it is a time such as %s, a time ago such as 24h or 7d, a commit of at least 7 digits, or the name of a Change",
		flag, text, time.Now().UTC().Format(time.RFC3339))
}
