// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestProtobufIsNotOnOffer(t *testing.T) {
	codecs := NewCodecs(NewScheme())
	var offered []string
	for _, info := range (withoutProtobuf{codecs}).SupportedMediaTypes() {
		offered = append(offered, info.MediaType)
	}
	if want := []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML}; !slices.Equal(offered, want) {
		t.Errorf("media types = %v, want %v", offered, want)
	}
	if _, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf); !ok {
		t.Error("the codecs themselves have changed")
	}
}
