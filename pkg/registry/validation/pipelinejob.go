// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	gojson "encoding/json"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

const (
	// maxJobTemplate leaves room for all sinks of a pipeline in what etcd takes for an object, 1.5 MiB.
	maxJobTemplate = 64 << 10
	// What a Job has besides its template, so that containers find the batch.
	batchVolume   = "slipstream-batch"
	batchFolder   = "/etc/slipstream/batch"
	batchVariable = "SLIPSTREAM_BATCH"
)

func validateJobSink(sink *configbutler.JobSink, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if sink.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "name the namespace that Jobs are made in"))
	} else {
		errs = invalidUnless(apivalidation.ValidateNamespaceName(sink.Namespace, false), sink.Namespace, path.Child("namespace"))
	}
	errs = append(errs, validateReferenceName(sink.ServiceAccountName, path.Child("serviceAccountName"))...)
	errs = append(errs, validateOneOf(sink.ConcurrencyPolicy, path.Child("concurrencyPolicy"),
		configbutler.PipelineConcurrencyForbid, configbutler.PipelineConcurrencyAllow)...)
	path = path.Child("template")
	template, problems := decodeJobTemplate(sink.Template, path)
	if len(problems) > 0 {
		return append(errs, problems...)
	}
	return append(errs, validateJobTemplate(template, sink.ServiceAccountName, path)...)
}

// decodeJobTemplate decodes a template strictly, so that unknown fields are rejected.
func decodeJobTemplate(raw runtime.RawExtension, path *field.Path) (*batchv1.JobTemplateSpec, field.ErrorList) {
	switch n := len(raw.Raw); {
	case n == 0 || string(raw.Raw) == "null":
		return nil, field.ErrorList{field.Required(path, "must be a JobTemplateSpec of batch/v1, as in spec.jobTemplate of a CronJob")}
	case n > maxJobTemplate:
		return nil, field.ErrorList{field.TooLong(path, "", maxJobTemplate)}
	}
	template := &batchv1.JobTemplateSpec{}
	strict, err := json.UnmarshalStrict(raw.Raw, template)
	if err != nil {
		return nil, field.ErrorList{undecodable(err, path)}
	}
	var errs field.ErrorList
	for _, problem := range strict {
		at := path
		if wrong, ok := errors.AsType[json.FieldError](problem); ok {
			at = path.Child(wrong.FieldPath())
		}
		errs = append(errs, field.Forbidden(at, problem.Error()+"; must be a JobTemplateSpec of batch/v1"))
	}
	return template, errs
}

// undecodable returns the error for a value of the wrong type.
func undecodable(err error, path *field.Path) *field.Error {
	const allowed = "must be a JobTemplateSpec of batch/v1"
	var wrong *gojson.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return field.Invalid(path.Child(wrong.Field), wrong.Value, fmt.Sprintf("%s, where this is of the type %s", allowed, wrong.Type))
	}
	return field.Invalid(path, "***", allowed+": "+err.Error())
}

// validateJobTemplate rejects what would prevent every Job of the template from being created or from running with the
// sink's account.
func validateJobTemplate(template *batchv1.JobTemplateSpec, account string, path *field.Path) field.ErrorList {
	errs := validateTemplateMeta(&template.ObjectMeta, path.Child("metadata"))
	path = path.Child("spec")
	if template.Spec.Selector != nil {
		errs = append(errs, field.Forbidden(path.Child("selector"), "must be absent: each Job has its own Pods"))
	}
	if template.Spec.ManualSelector != nil {
		errs = append(errs, field.Forbidden(path.Child("manualSelector"), "must be absent: each Job has its own Pods"))
	}
	return append(errs, validatePodSpec(&template.Spec.Template.Spec, account, path.Child("template", "spec"))...)
}

// validateTemplateMeta rejects metadata of Jobs other than labels and annotations.
func validateTemplateMeta(meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(meta.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(meta.Annotations, path.Child("annotations"))...)
	for _, other := range []struct {
		name  string
		isSet bool
	}{
		{"name", meta.Name != ""},
		{"generateName", meta.GenerateName != ""},
		{"namespace", meta.Namespace != ""},
		{"finalizers", len(meta.Finalizers) > 0},
		{"ownerReferences", len(meta.OwnerReferences) > 0},
	} {
		if other.isSet {
			errs = append(errs, field.Forbidden(path.Child(other.name), "must be absent: only labels and annotations go to the Jobs"))
		}
	}
	return errs
}

func validatePodSpec(pod *corev1.PodSpec, account string, path *field.Path) field.ErrorList {
	errs := validateAccount(pod, account, path)
	if pod.RestartPolicy != corev1.RestartPolicyNever && pod.RestartPolicy != corev1.RestartPolicyOnFailure {
		errs = append(errs, field.NotSupported(path.Child("restartPolicy"), pod.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}))
	}
	if len(pod.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), "at least one container is needed"))
	}
	for i, volume := range pod.Volumes {
		if volume.Name == batchVolume {
			errs = append(errs, field.Invalid(path.Child("volumes").Index(i).Child("name"), volume.Name,
				"must be another name: the volume with the batch has this one"))
		}
	}
	errs = append(errs, validateContainers(pod.InitContainers, path.Child("initContainers"))...)
	return append(errs, validateContainers(pod.Containers, path.Child("containers"))...)
}

// validateAccount rejects accounts other than the sink's, because only that one was authorized.
func validateAccount(pod *corev1.PodSpec, account string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, given := range []struct{ name, value string }{
		{"serviceAccountName", pod.ServiceAccountName}, {"serviceAccount", pod.DeprecatedServiceAccount},
	} {
		if given.value != "" && given.value != account {
			errs = append(errs, invalidAccount(path.Child(given.name), given.value, account))
		}
	}
	return errs
}

func invalidAccount(path *field.Path, named, account string) *field.Error {
	return field.Invalid(path, named, fmt.Sprintf("must be absent or %q, which is the sink's serviceAccountName", account))
}

// validateContainers checks that containers do not collide with the batch's volume and variables.
func validateContainers(containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		path := path.Index(i)
		for j, mount := range containers[i].VolumeMounts {
			if mount.MountPath == batchFolder || mount.MountPath == batchFolder+"/" {
				errs = append(errs, field.Invalid(path.Child("volumeMounts").Index(j).Child("mountPath"), mount.MountPath,
					"must be another folder: the batch is in this one"))
			}
		}
		for j, variable := range containers[i].Env {
			if variable.Name == batchVariable {
				errs = append(errs, field.Invalid(path.Child("env").Index(j).Child("name"), variable.Name,
					"must be another name: this variable has the path of the batch"))
			}
		}
	}
	return errs
}
