// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"

	generated "github.com/configbutler/slipstream/pkg/generated/openapi"
	"github.com/configbutler/slipstream/pkg/kube/buildversion"
)

// addOpenAPI adds OpenAPI v2 and v3 documents for the kinds of scheme. As in Kubernetes, their version is that of the program, which
// clients learn from there.
func addOpenAPI(config *genericapiserver.Config, scheme *runtime.Scheme) {
	namer := openapi.NewDefinitionNamer(scheme)
	v2 := genericapiserver.DefaultOpenAPIConfig(generated.GetOpenAPIDefinitions, namer)
	v2.Info.Title = name
	v2.Info.Version = buildversion.Version()
	v2.GetOperationIDAndTagsFromRoute = operationIDAndTags
	config.OpenAPIConfig = v2
	v3 := genericapiserver.DefaultOpenAPIV3Config(generated.GetOpenAPIDefinitions, namer)
	v3.Info.Title = name
	v3.Info.Version = buildversion.Version()
	v3.GetOperationIDAndTagsFromRoute = operationIDAndTags
	config.OpenAPIV3Config = v3
}

// subresource is the suffix of the operation ids of status subresources. Upstream concatenates kind and subresource
// without a separator, so that reading a GitDestinationStatus and reading the status of a GitDestination would have the
// same id.
const subresource = "Subresource"

// operationIDAndTags returns upstream's operation id and tags, with ids that distinguish kinds and subresources.
func operationIDAndTags(route common.Route) (string, []string, error) {
	adapter, ok := route.(*restfuladapter.RouteAdapter)
	if !ok {
		return "", nil, fmt.Errorf("naming the operation at %s: the route is a %T", route.Path(), route)
	}
	id, tags, err := openapi.GetOperationIDAndTags(adapter.Route)
	if strings.HasSuffix(route.Path(), "/status") {
		id += subresource
	}
	return id, tags, err
}
