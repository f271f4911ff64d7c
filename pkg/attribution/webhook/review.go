// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// FactOfReview returns the change that the reviewed request would make to an object. It returns nil if the request
// changes nothing that is mirrored: a dry run, a connection, a subresource other than scale, or a scale to the current
// number of replicas. hash returns the keyed hash of content. A review has no time; received is when it arrived, by our
// own clock.
//
// Content is the hash of the object as the webhook received it. An API server sends the version of the request, or one
// that the webhook's rules name. If that is not the mirrored version, apiVersion and perhaps fields differ, and the hash
// matches nothing: the author is then unknown rather than wrong.
func FactOfReview(review *admissionv1.AdmissionReview, received time.Time, hash func([]byte) string) (*attribution.Fact, error) {
	request := review.Request
	switch {
	case request == nil:
		return nil, errors.New("the admission review has no request")
	case request.DryRun != nil && *request.DryRun:
		return nil, nil
	case request.SubResource != "" && (request.SubResource != scaleSubresource || request.Operation != admissionv1.Update):
		return nil, nil
	case request.SubResource == scaleSubresource && scaleUnchanged(request):
		return nil, nil
	case request.UserInfo.Username == "":
		return nil, errors.New("the admission review has no user")
	}
	fact := &attribution.Fact{
		Signal: attribution.Admission, Operation: v1alpha1.Operation(request.Operation), Begun: received, Actor: actorOf(request.UserInfo, ""),
		Group: request.Resource.Group, Resource: request.Resource.Resource,
		Namespace: namespaceOf(request.Resource.Group, request.Resource.Resource, request.Namespace),
	}
	var err error
	switch {
	case request.SubResource == scaleSubresource:
		err = fillScale(fact, request)
	case request.Operation == admissionv1.Create, request.Operation == admissionv1.Update:
		err = fillWrite(fact, request, hash)
	case request.Operation == admissionv1.Delete:
		err = fillDelete(fact, request)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	setID(fact, string(request.UID))
	return fact, nil
}

// fillWrite sets the fields of a create or update. The API server sets the uid of a new object before admission.
func fillWrite(fact *attribution.Fact, request *admissionv1.AdmissionRequest, hash func([]byte) string) error {
	written := &unstructured.Unstructured{}
	switch err := written.UnmarshalJSON(request.Object.Raw); {
	case runtime.IsMissingKind(err):
		return errors.New("the object under review has no kind") // err contains the object, which may be a Secret
	case err != nil:
		return fmt.Errorf("reading the object under review: %w", err)
	}
	content, err := manifest.Render(written)
	if err != nil {
		return fmt.Errorf("reading the object under review: %w", err)
	}
	fact.Name, fact.UID, fact.Content = written.GetName(), written.GetUID(), hash(content)
	if request.Operation == admissionv1.Update {
		var old *object
		if old, err = readReviewed(request.OldObject); err != nil {
			return err
		}
		fact.Before = old.Metadata.ResourceVersion
	}
	return validate(fact)
}

// fillScale sets the requested replicas, 0 if the number is omitted. A Scale has the uid and the resourceVersion of the
// scaled object.
func fillScale(fact *attribution.Fact, request *admissionv1.AdmissionRequest) error {
	replicas, err := readReplicas(request.Object)
	if err != nil {
		return err
	}
	old, err := readReviewed(request.OldObject)
	if err != nil {
		return err
	}
	fact.Name, fact.UID, fact.Before = old.Metadata.Name, old.Metadata.UID, old.Metadata.ResourceVersion
	fact.Replicas = &replicas
	return validate(fact)
}

// scaleUnchanged reports whether a scale request asks for the current number of replicas. Such a request changes nothing,
// and its fact would match any other change that leaves that number as it is.
func scaleUnchanged(request *admissionv1.AdmissionRequest) bool {
	replicas, err := readReplicas(request.Object)
	before, oldErr := readReplicas(request.OldObject)
	return err == nil && oldErr == nil && replicas == before
}

func readReplicas(raw runtime.RawExtension) (int64, error) {
	var scale struct {
		Spec struct {
			Replicas int64 `json:"replicas"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw.Raw, &scale); err != nil {
		return 0, fmt.Errorf("reading the scale under review: %w", err)
	}
	return scale.Spec.Replicas, nil
}

// fillDelete sets the fields of a deletion. The request has no name if a collection is deleted; the object has.
func fillDelete(fact *attribution.Fact, request *admissionv1.AdmissionRequest) error {
	old, err := readReviewed(request.OldObject)
	if err != nil {
		return err
	}
	options, err := readDeleteOptions(&runtime.Unknown{Raw: request.Options.Raw})
	if err != nil {
		return err
	}
	fact.Name, fact.UID, fact.Before = old.Metadata.Name, old.Metadata.UID, old.Metadata.ResourceVersion
	fact.Lasting = lasts(fact.Group, fact.Resource, old, options)
	return validate(fact)
}

// readReviewed decodes an object that the review must contain.
func readReviewed(raw runtime.RawExtension) (*object, error) {
	read := &object{}
	if err := json.Unmarshal(raw.Raw, read); err != nil {
		return nil, fmt.Errorf("reading the object before the change under review: %w", err)
	}
	return read, nil
}

func validate(fact *attribution.Fact) error {
	if fact.Resource == "" || fact.Name == "" || fact.UID == "" {
		return fmt.Errorf("an object of %q under review has no resource, no name or no uid", fact.Resource)
	}
	return nil
}
