// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// withoutProtobuf offers JSON and YAML only, since the kinds have no protobuf encoding. Clients such as the namespace
// controller prefer protobuf and accept JSON. If protobuf were offered, they would choose it and fail, and no namespace
// could be deleted any more.
type withoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes returns those of the serializer except protobuf.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}
