// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package people

import (
	"path/filepath"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// InstallGatewayAPI installs the definitions of the Gateway API's release and waits until they are served.
func (p *Person) InstallGatewayAPI(t testing.TB) {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := programs.ModuleFolder(t.Context(), root, "sigs.k8s.io/gateway-api")
	if err != nil {
		t.Fatal(err)
	}
	apply, wait := []string{"apply", "--server-side"}, []string{"wait", "--for=condition=Established", "--timeout=10m"}
	for _, plural := range []string{"gateways", "grpcroutes", "httproutes", "referencegrants"} {
		apply = append(apply, "-f", filepath.Join(folder, "config", "crd", "standard", "gateway.networking.k8s.io_"+plural+".yaml"))
		wait = append(wait, "crd/"+plural+".gateway.networking.k8s.io")
	}
	p.Run(t, apply...)
	p.Run(t, wait...)
}
