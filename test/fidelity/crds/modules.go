// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

// module is a published Go module with definitions.
type module struct {
	path, version string
	// sum is the module's checksum in a go.sum.
	sum string
	// folder is the folder of the files, whose names are given without .yaml.
	folder string
	files  []string
}

// modules are small enough to download in every test: the largest has 19 MB.
var modules = []module{
	{
		path: "github.com/cert-manager/cert-manager", version: "v1.21.2", sum: "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
		folder: "deploy/crds", files: []string{"cert-manager.io_certificates", "cert-manager.io_clusterissuers", "cert-manager.io_issuers"},
	},
	{
		path: "github.com/external-secrets/external-secrets", version: "v1.3.2", sum: "h1:u2J8RjlHIeF0oZCqtl92adI/uZWUwOesJIDkfql6LqQ=",
		folder: "config/crds/bases",
		files:  []string{"external-secrets.io_externalsecrets", "external-secrets.io_secretstores", "generators.external-secrets.io_fakes"},
	},
	{
		path: "github.com/fluxcd/kustomize-controller", version: "v1.7.3", sum: "h1:SzNnGn/4ObAPEHHleM5U7y/AKxKXph3Vj6ZhteeXw8M=",
		folder: "config/crd/bases", files: []string{"kustomize.toolkit.fluxcd.io_kustomizations"},
	},
	{
		path: "github.com/kedacore/keda/v2", version: "v2.21.0", sum: "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
		folder: "config/crd/bases", files: []string{"keda.sh_scaledobjects", "keda.sh_triggerauthentications"},
	},
	{
		path: "github.com/kyverno/kyverno", version: "v1.19.1", sum: "h1:/MkgFii3/VlQfKR1JpC9tVwNNVNQTt2S4U6qCsafsTU=",
		folder: "config/crds",
		files: []string{
			"kyverno/kyverno.io_clusterpolicies", "kyverno/kyverno.io_policyexceptions", "policyreport/wgpolicyk8s.io_policyreports",
		},
	},
	{
		path: "github.com/prometheus-operator/prometheus-operator", version: "v0.85.0", sum: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
		folder: "example/prometheus-operator-crd",
		files:  []string{"monitoring.coreos.com_prometheuses", "monitoring.coreos.com_prometheusrules", "monitoring.coreos.com_servicemonitors"},
	},
	{
		path: "istio.io/api", version: "v1.31.1", sum: "h1:5Yb5ihcz4YQsCkciusK7DnFpBMwRB6EFWeUKH1Atuyk=",
		folder: "kubernetes", files: []string{"customresourcedefinitions.gen"},
	},
	{
		path: "knative.dev/serving", version: "v0.51.0", sum: "h1:yN2Q7eYqJgoPfZkATjoBZyGbZ2P1Qhns9HIMU4mF+to=",
		folder: "config/core/300-resources", files: []string{"service"},
	},
	{
		path: "sigs.k8s.io/cluster-api", version: "v1.14.2", sum: "h1:o3GFNaeNFAOEEMpDPfhCK+2CjmV6gtQ8yLEcUwCg7bA=",
		folder: "core/config/crd/bases",
		files:  []string{"cluster.x-k8s.io_clusterclasses", "cluster.x-k8s.io_clusters", "cluster.x-k8s.io_machinedeployments"},
	},
	{
		path: "sigs.k8s.io/gateway-api", version: "v1.4.1", sum: "h1:NPxFutNkKNa8UfLd2CMlEuhIPMQgDQ6DXNKG9sHbJU8=",
		folder: "config/crd/standard",
		files: []string{
			"gateway.networking.k8s.io_gatewayclasses", "gateway.networking.k8s.io_gateways", "gateway.networking.k8s.io_httproutes",
		},
	},
}

// followers have the definitions with which a cluster follows a repository.
var followers = []module{
	{
		path: "github.com/argoproj/argo-cd/v3", version: "v3.2.1", sum: "h1:rvrkW/JdH4V+xJgNDZI9wa/Ygd+fWoGbd1rAhvno22c=",
		folder: "manifests/crds", files: []string{"application-crd"},
	},
	{
		path: "github.com/fluxcd/kustomize-controller", version: "v1.7.3", sum: "h1:SzNnGn/4ObAPEHHleM5U7y/AKxKXph3Vj6ZhteeXw8M=",
		folder: "config/crd/bases", files: []string{"kustomize.toolkit.fluxcd.io_kustomizations"},
	},
	{
		path: "github.com/fluxcd/source-controller", version: "v1.7.3", sum: "h1:gFfeBiNUgF0kFFGap/rrMeJqz+0Tod0ARENJO8w/UA8=",
		folder: "config/crd/bases", files: []string{"source.toolkit.fluxcd.io_gitrepositories"},
	},
}
