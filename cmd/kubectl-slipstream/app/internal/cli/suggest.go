// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// maxNames is the number of names among which a similar one is looked for.
	maxNames = 500
	// maxNamespaces is the number of namespaces that are named.
	maxNamespaces = 5
)

// clusterScoped are the resources of configbutler.ai without a namespace.
var clusterScoped = []string{"clusterwatchrules", "syncpipelines", "syncpolicies"}

// sought is an error about an object that a flag names, or could name.
type sought struct {
	error
	flag, namespace string
}

// Unwrap returns the error without the flag.
func (s *sought) Unwrap() error { return s.error }

// Sought adds to an error about an object that a flag names as [NAMESPACE/]NAME, or could name, the flag and the namespace in which it was
// looked for, so that Explain suggests another value of the flag. Without a flag, it suggests none.
func Sought(err error, flag, namespace string) error {
	if err == nil {
		return nil
	}
	return &sought{err, flag, namespace}
}

// suggestion returns names that may be meant by that of an object that does not exist, and the namespaces in which one has the name. It
// returns nothing if there are none that the user may list.
func suggestion(ctx context.Context, config genericclioptions.RESTClientGetter, err error, missing *metav1.StatusDetails) string {
	found, problem := config.ToRESTConfig()
	if problem != nil {
		return ""
	}
	clients, problem := dynamic.NewForConfig(found)
	if problem != nil {
		return ""
	}
	namespace, _, problem := config.ToRawKubeConfigLoader().Namespace()
	if problem != nil {
		return ""
	}
	objects := clients.Resource(v1alpha1.SchemeGroupVersion.WithResource(missing.Kind))
	if slices.Contains(clusterScoped, missing.Kind) {
		return DidYouMean(missing.Name, NamesIn(ctx, objects), "")
	}
	give := func(string) string { return ": give it with -n" }
	if of := (*sought)(nil); errors.As(err, &of) {
		namespace, give = of.namespace, of.give(missing.Name)
	}
	if hint := DidYouMean(missing.Name, NamesIn(ctx, objects.Namespace(namespace)), " in the namespace "+namespace); hint != "" {
		return hint
	}
	return elsewhere(ctx, objects, missing.Name, give)
}

// give returns what to do about an object of a name that is in another namespace.
func (s *sought) give(name string) func(namespace string) string {
	return func(namespace string) string {
		if s.flag == "" {
			return ""
		}
		return ": give it with " + s.flag + " " + Quoted(namespace+"/"+name)
	}
}

// NamesIn returns the names of objects, as far as the user may list them.
func NamesIn(ctx context.Context, objects dynamic.ResourceInterface) []string {
	list, err := objects.List(ctx, metav1.ListOptions{Limit: maxNames})
	if err != nil {
		return nil // Without a list nothing is suggested.
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].GetName()
	}
	return names
}

// DidYouMean asks about names that are similar to one that does not exist. It is empty if there are none.
func DidYouMean(wrong string, names []string, where string) string {
	found := similar(wrong, names)
	if len(found) == 0 {
		return ""
	}
	return strings.TrimSuffix(DidYouMeanOneOf(found), "?") + where + "?"
}

// DidYouMeanOneOf asks about names. It is empty without names.
func DidYouMeanOneOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, len(names))
	for i := range names {
		quoted[i] = strconv.Quote(names[i])
	}
	return fmt.Sprintf("Did you mean %s?", orList(quoted))
}

// elsewhere names the namespaces that have an object of the name, and says what to do for one of them.
func elsewhere(ctx context.Context, objects dynamic.ResourceInterface, name string, give func(namespace string) string) string {
	list, err := objects.List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), Limit: maxNamespaces,
	})
	if err != nil {
		return "" // The user may not list them in all namespaces.
	}
	var namespaces []string
	for i := range list.Items {
		if list.Items[i].GetName() == name {
			namespaces = append(namespaces, list.Items[i].GetNamespace())
		}
	}
	if len(namespaces) == 0 {
		return ""
	}
	return fmt.Sprintf("There is one of this name in the namespace %s%s", strings.Join(namespaces, ", "), give(namespaces[0]))
}
