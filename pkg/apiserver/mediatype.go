// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// withoutProtobuf offers our kinds in JSON and YAML only, since they have no protobuf encoding. Clients such as the
// namespace controller prefer protobuf and take JSON; if protobuf were on offer, they would choose it and get an error,
// and no namespace could be deleted any more.
type withoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes are those of the serializer, less protobuf.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}
