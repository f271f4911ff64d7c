// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"

	configbutlerfuzzer "github.com/configbutler/slipstream/pkg/apis/configbutler/fuzzer"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
)

func TestRoundTripOfEveryKind(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, install.Install,
		fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, configbutlerfuzzer.Funcs))
}
