/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package objectsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/targets"
)

func TestReasonFor(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	configMap := schema.GroupKind{Kind: "ConfigMap"}
	terminating := apierrors.NewForbidden(configMaps, "x", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	dial := func(err error) error {
		return &url.Error{Op: "Patch", URL: "https://127.0.0.1:1", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	deadline, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()

	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"too large for the mark":            {&transform.TooLargeError{Size: 1}, plan.ReasonTooLarge},
		"too large for the server":          {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), plan.ReasonTooLarge},
		"a taken name":                      {&nameTakenError{reason: "no mark"}, plan.ReasonConflict},
		"a taken name in the mailbox":       {fmt.Errorf("%w: configmaps shop/till", errNameTakenInMailbox), plan.ReasonConflict},
		"a name that a race has taken":      {fmt.Errorf("%w: %w", errMailboxRefused, fmt.Errorf("%w: %w", errNameTakenInMailbox, apierrors.NewAlreadyExists(configMaps, "x"))), plan.ReasonConflict},
		"another writer":                    {fmt.Errorf("%w: [other]", errFieldConflict), plan.ReasonContended},
		"a cordon":                          {errCordoned, plan.ReasonTargetCordoned},
		"not replaced because of a cordon":  {fmt.Errorf("%w; %w", &immutableError{[]string{"spec"}, errors.New("no")}, errCordoned), plan.ReasonTargetCordoned},
		"refused by the hub":                {&transform.InvalidObjectError{Field: "metadata.name", Message: "no"}, plan.ReasonInvalid},
		"a field that stays":                {&immutableError{[]string{"spec"}, apierrors.NewInvalid(configMap, "x", nil)}, plan.ReasonImmutable},
		"a field that stays in the mailbox": {fmt.Errorf("%w: %w", errMailboxRefused, apierrors.NewInvalid(configMap, "x", nil)), plan.ReasonMailboxRefused},
		"a kind that is not served":         {fmt.Errorf("%w: Widget.example.com", observe.ErrNotServed), plan.ReasonNotServed},
		"over quota":                        {apierrors.NewForbidden(configMaps, "x", errors.New("exceeded quota: few, requested: configmaps=1")), plan.ReasonQuotaExceeded},
		"denied by a webhook": {
			apierrors.NewForbidden(configMaps, "x", errors.New(`admission webhook "no.example.com" denied the request: no`)), plan.ReasonAdmissionDenied,
		},
		"denied by a webhook, with a code of its own": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: 418, Message: `admission webhook "no.example.com" denied the request without explanation`}}, plan.ReasonAdmissionDenied,
		},
		"what only sounds like a denial":     {errors.New(`admission webhook "no.example.com" denied the request: no`), plan.ReasonFailed},
		"refused without a cause":            {apierrors.NewForbidden(configMaps, "x", errors.New("no")), plan.ReasonAdmissionDenied},
		"namespace terminating":              {terminating, plan.ReasonNamespaceTerminating},
		"invalid":                            {apierrors.NewInvalid(configMap, "x", nil), plan.ReasonInvalid},
		"bad request":                        {apierrors.NewBadRequest("unknown field"), plan.ReasonInvalid},
		"not found":                          {apierrors.NewNotFound(configMaps, "x"), plan.ReasonNotServed},
		"a binding without its role":         {apierrors.NewNotFound(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, "x"), plan.ReasonInvalid},
		"further rights, in a short message": {apierrors.NewForbidden(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, "x", errors.New(`user "hub" (groups=["system:authenticated" "system:s…Names:["x"], Verbs:["proxy"]}`)), plan.ReasonForbidden},
		"resource not served":                {apierrors.NewGenericServerResponse(404, "patch", configMaps, "x", "", 0, true), plan.ReasonNotServed},
		"method not supported":               {apierrors.NewMethodNotSupported(configMaps, "patch"), plan.ReasonNotServed},
		"conflict":                           {apierrors.NewConflict(configMaps, "x", errors.New("replaced")), plan.ReasonFailed},
		"exists":                             {fmt.Errorf("%w: x", targets.ErrAlreadyExists), plan.ReasonFailed},
		"already exists":                     {apierrors.NewAlreadyExists(configMaps, "x"), plan.ReasonFailed},
		"unauthorized":                       {apierrors.NewUnauthorized("expired"), plan.ReasonFailed},
		"gone":                               {apierrors.NewResourceExpired("old"), plan.ReasonFailed},
		"too many requests":                  {apierrors.NewTooManyRequests("slow down", 1), plan.ReasonFailed},
		"internal error":                     {apierrors.NewInternalError(errors.New("oops")), plan.ReasonFailed},
		"service unavailable":                {apierrors.NewServiceUnavailable("starting"), plan.ReasonFailed},
		"the server's own timeout":           {apierrors.NewServerTimeout(configMaps, "patch", 1), plan.ReasonFailed},
		"the server's timeout of a request":  {apierrors.NewTimeoutError("too slow", 1), plan.ReasonFailed},
		"anything else":                      {errors.New("oops"), plan.ReasonFailed},
		"connection refused":                 {dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), plan.ReasonTargetUnreachable},
		"connection reset":                   {dial(os.NewSyscallError("read", syscall.ECONNRESET)), plan.ReasonTargetUnreachable},
		"no route":                           {dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), plan.ReasonTargetUnreachable},
		"no such host":                       {dial(&net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}), plan.ReasonTargetUnreachable},
		"connection closed":                  {&url.Error{Op: "Patch", URL: "https://127.0.0.1:1", Err: io.EOF}, plan.ReasonTargetUnreachable},
		"deadline exceeded":                  {context.DeadlineExceeded, plan.ReasonTargetUnreachable},
		"deadline of a context":              {deadline.Err(), plan.ReasonTargetUnreachable},
		"deadline of a request":              {&url.Error{Op: "Patch", URL: "https://127.0.0.1:1", Err: context.DeadlineExceeded}, plan.ReasonTargetUnreachable},
		"deadline of the operating system":   {dial(os.ErrDeadlineExceeded), plan.ReasonTargetUnreachable},
		"deadline while waiting for a turn":  {fmt.Errorf("client rate limiter Wait returned an error: %w", context.DeadlineExceeded), plan.ReasonTargetUnreachable},
		"two errors":                         {fmt.Errorf("%w; and %w", errors.New("oops"), context.DeadlineExceeded), plan.ReasonTargetUnreachable},
		"kcp is away":                        {fmt.Errorf("%w: %w", errMailboxRefused, dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))), plan.ReasonMailboxRefused},
		"kcp forbids the status":             {fmt.Errorf("%w: %w", errMailboxRefused, apierrors.NewForbidden(configMaps, "x", errors.New("no"))), plan.ReasonMailboxRefused},
		"kcp has no such object":             {fmt.Errorf("%w: %w", errMailboxRefused, apierrors.NewNotFound(configMaps, "x")), plan.ReasonMailboxRefused},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{test.err, fmt.Errorf("configmaps a/x: %w", test.err)} {
				if got := ReasonFor(err); got != test.want {
					t.Errorf("%v: want %s, got %s", err, test.want, got)
				}
			}
			if got := newFailure(test.err); got.Reason != test.want || got.Message != requestmetrics.SafeMessage(test.err) {
				t.Errorf("the failure is %+v", got)
			}
		})
	}
}

// An immutable object whose replacement was refused too is still reported as immutable, and the message contains both refusals.
func TestImmutableError(t *testing.T) {
	cause := errors.New("spec.x: field is immutable")
	refused := &immutableError{[]string{"spec.x", "spec.y"}, cause}
	for _, part := range []string{"spec.x, spec.y", cause.Error()} {
		if !strings.Contains(refused.Error(), part) {
			t.Errorf("%q does not contain %q", refused, part)
		}
	}
	both := fmt.Errorf("%w; it was not replaced: %w", refused, apierrors.NewBadRequest("no"))
	if !errors.Is(refused, cause) || ReasonFor(both) != plan.ReasonImmutable {
		t.Errorf("the reason for %v is %s", both, ReasonFor(both))
	}
}

func TestImmutableFields(t *testing.T) {
	configMap := schema.GroupKind{Kind: "ConfigMap"}
	spec := field.NewPath("spec")
	immutable := field.Invalid(spec.Child("template"), "x", "field is immutable")
	wrong := field.Invalid(spec.Child("replicas"), -1, "must be greater than or equal to 0")
	replaced := field.Invalid(field.NewPath("metadata", "uid"), "u", "field is immutable")
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"no error":                    {nil, nil},
		"something else":              {errors.New("field is immutable"), nil},
		"another reason":              {apierrors.NewBadRequest("field is immutable"), nil},
		"nothing in particular":       {apierrors.NewInvalid(configMap, "x", nil), nil},
		"no details":                  {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: "field is immutable"}}, nil},
		"a field":                     {apierrors.NewInvalid(configMap, "x", field.ErrorList{immutable}), []string{"spec.template"}},
		"a field, wrapped":            {fmt.Errorf("cannot: %w", apierrors.NewInvalid(configMap, "x", field.ErrorList{immutable})), []string{"spec.template"}},
		"one of two":                  {apierrors.NewInvalid(configMap, "x", field.ErrorList{wrong, immutable}), []string{"spec.template"}},
		"only a wrong value":          {apierrors.NewInvalid(configMap, "x", field.ErrorList{wrong}), nil},
		"a replaced object":           {apierrors.NewInvalid(configMap, "x", field.ErrorList{replaced}), nil},
		"a replaced object and more":  {apierrors.NewInvalid(configMap, "x", field.ErrorList{immutable, replaced}), nil},
		"a rule in other words":       {apierrors.NewInvalid(configMap, "x", field.ErrorList{field.Invalid(spec, "x", "the class cannot be changed")}), []string{"spec"}},
		"a rule in still other words": {apierrors.NewInvalid(configMap, "x", field.ErrorList{field.Forbidden(spec, "may not be updated after creation")}), []string{"spec"}},
	} {
		if got := immutableFields(test.err); !slices.Equal(got, test.want) {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

// The texts are from Kubernetes 1.35. A missing right and a refusal by an admission plugin have the same code and reason.
func TestReasonOfForbidden(t *testing.T) {
	pods, claims, roles := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "persistentvolumeclaims"}, schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}
	for _, test := range []struct {
		resource   schema.GroupResource
		name, text string
		want       string
	}{
		{pods, "x", `User "system:serviceaccount:synchub:agent" cannot create resource "pods" in API group "" in the namespace "shop"`, plan.ReasonForbidden},
		{pods, "", `User "hub" cannot patch resource "pods/status" in API group "" in the namespace "shop": RBAC: clusterrole.rbac.authorization.k8s.io "x" not found`, plan.ReasonForbidden},
		{pods, "x", `User "a \"b\" c" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`, plan.ReasonForbidden},
		{schema.GroupResource{}, "", `User "hub" cannot get path "/api"`, plan.ReasonForbidden},
		{roles, "x", `user "hub" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`, plan.ReasonForbidden},
		{pods, "x", `cannot set an ownerRef on a resource you can't delete: User "hub" cannot delete resource`, plan.ReasonForbidden},
		{schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}, "x", `user not permitted to approve requests with signerName "kubernetes.io/kubelet-serving"`, plan.ReasonForbidden},

		{pods, "x", `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false)`, plan.ReasonAdmissionDenied},
		{pods, "x", `[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi]`, plan.ReasonAdmissionDenied},
		{claims, "x", `minimum storage usage per PersistentVolumeClaim is 5Gi, but request is 1Gi`, plan.ReasonAdmissionDenied},
		{claims, "x", `only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`, plan.ReasonAdmissionDenied},
		{pods, "x", `error looking up service account shop/till: serviceaccount "till" not found`, plan.ReasonAdmissionDenied},
		{pods, "x", `no PriorityClass with name high was found`, plan.ReasonAdmissionDenied},
		{schema.GroupResource{Resource: "services"}, "x", `spec.externalIPs: Forbidden: Use of external IPs is denied by admission control.`, plan.ReasonAdmissionDenied},
		{pods, "x", `image policy webhook backend denied one or more images: User cannot create resource`, plan.ReasonAdmissionDenied},

		{pods, "x", `exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1`, plan.ReasonQuotaExceeded},
		{pods, "x", `failed quota: few: must specify limits.cpu for: main`, plan.ReasonQuotaExceeded},
		{pods, "x", `status unknown for quota: few, resources: pods`, plan.ReasonQuotaExceeded},
	} {
		if got := ReasonFor(fmt.Errorf("pods shop/x: %w", apierrors.NewForbidden(test.resource, test.name, errors.New(test.text)))); got != test.want {
			t.Errorf("%s: want %s, got %s", test.text, test.want, got)
		}
	}
}

func TestIsMissingNamespace(t *testing.T) {
	namespaces, configMaps := schema.GroupResource{Resource: "namespaces"}, schema.GroupResource{Resource: "configmaps"}
	forbidden := apierrors.NewForbidden(namespaces, "shop", errors.New("no"))
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                {nil, false},
		"the namespace":           {apierrors.NewNotFound(namespaces, "shop"), true},
		"the namespace, wrapped":  {fmt.Errorf("cannot: %w", apierrors.NewNotFound(namespaces, "shop")), true},
		"a cluster-scoped object": {apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "shop"), false},
		"another namespace":       {apierrors.NewNotFound(namespaces, "bank"), false},
		"the object":              {apierrors.NewNotFound(configMaps, "shop"), false},
		"no details":              {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound}}, false},
		"forbidden":               {forbidden, false},
		"something else":          {errors.New("oops"), false},
	} {
		if got := writes.IsMissingNamespace(test.err, "shop"); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

// A cluster-scoped object has no namespace that could be missing.
func TestNoNamespaceIsMissing(t *testing.T) {
	for _, name := range []string{"shop", ""} {
		err := apierrors.NewNotFound(schema.GroupResource{Resource: "clusterroles"}, name)
		if writes.IsMissingNamespace(err, "") {
			t.Errorf("%v is taken for a missing namespace", err)
		}
	}
}

// Messages for users of a mailbox do not contain addresses of servers.
func TestMessagesHideAddresses(t *testing.T) {
	refused := &url.Error{Op: "Patch", URL: "https://10.1.2.3:6443/api", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 6443}, Err: syscall.ECONNREFUSED}}
	for name, err := range map[string]error{
		"target":                         fmt.Errorf("cannot create the namespace a: %w", refused),
		"mailbox":                        fmt.Errorf("%w: %w", errMailboxRefused, refused),
		"connection":                     fmt.Errorf("configmaps a/x: %w", refused.Err),
		"beside what the server answers": fmt.Errorf("%w; and reading it failed: %w", targets.ErrAlreadyExists, refused),
	} {
		if got := newFailure(err).Message; strings.Contains(got, "10.1.2.3") || got == "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	// The API server's message is kept.
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("not for you"))
	if got := newFailure(denied).Message; !strings.Contains(got, "not for you") {
		t.Errorf("got %q", got)
	}
}
