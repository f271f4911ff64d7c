// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/kube/buildversion"
)

// The plugin reads the version of the server in its OpenAPI document.
func TestOpenAPIHasTheVersionOfTheProgram(t *testing.T) {
	config := apiserver.NewConfig(apiserver.NewScheme(), apiserver.NewCodecs(apiserver.NewScheme())).Generic
	want := buildversion.Version()
	if got := config.OpenAPIV3Config.Info.Version; got != want || want == "" {
		t.Errorf("version %q, want %q", got, want)
	}
	if got := config.OpenAPIConfig.Info.Version; got != want {
		t.Errorf("version of v2 %q, want %q", got, want)
	}
}
