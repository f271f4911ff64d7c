// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
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

// suggestion returns names that may be meant by that of an object that does not exist, and the namespaces in which one has the name. It
// returns nothing if there are none that the user may list.
func suggestion(ctx context.Context, config genericclioptions.RESTClientGetter, missing *metav1.StatusDetails) string {
	found, err := config.ToRESTConfig()
	if err != nil {
		return ""
	}
	clients, err := dynamic.NewForConfig(found)
	if err != nil {
		return ""
	}
	namespace, _, err := config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return ""
	}
	objects := clients.Resource(v1alpha1.SchemeGroupVersion.WithResource(missing.Kind))
	if slices.Contains(clusterScoped, missing.Kind) {
		return didYouMean(missing.Name, namesIn(ctx, objects), "")
	}
	if hint := didYouMean(missing.Name, namesIn(ctx, objects.Namespace(namespace)), " in the namespace "+namespace); hint != "" {
		return hint
	}
	return elsewhere(ctx, objects, missing.Name)
}

// namesIn returns the names of objects, as far as the user may list them.
func namesIn(ctx context.Context, objects dynamic.ResourceInterface) []string {
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

// didYouMean asks about similar names.
func didYouMean(wrong string, names []string, where string) string {
	found := similar(wrong, names)
	if len(found) == 0 {
		return ""
	}
	for i := range found {
		found[i] = strconv.Quote(found[i])
	}
	return fmt.Sprintf("Did you mean %s%s?", orList(found), where)
}

// elsewhere names the namespaces that have an object of the name.
func elsewhere(ctx context.Context, objects dynamic.ResourceInterface, name string) string {
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
	return fmt.Sprintf("There is one of this name in the namespace %s: give it with -n", strings.Join(namespaces, ", "))
}
