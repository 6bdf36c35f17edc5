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

package inventories

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kcp-dev/logicalcluster/v3"
	rbacv1 "k8s.io/api/rbac/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/transport"
)

func syncTarget(change func(*edgev2alpha1.SyncTarget)) *edgev2alpha1.SyncTarget {
	made := &edgev2alpha1.SyncTarget{}
	made.Name, made.UID, made.ResourceVersion, made.Generation = "florin", "uid", "1", 7
	made.Annotations = map[string]string{logicalcluster.AnnotationKey: "abc"}
	made.Finalizers = []string{"synchub.dev/mailbox"}
	made.Spec.KubeconfigSecretRef = &edgev2alpha1.SecretReference{Name: "s"}
	made.Status.ClusterID = "id"
	change(made)
	return made
}

func TestCachedFieldsOfASyncTarget(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		given func(*edgev2alpha1.SyncTarget)
		// held is the difference to the cached SyncTarget without large fields.
		held func(*edgev2alpha1.SyncTarget)
	}{
		"nothing large": {given: func(*edgev2alpha1.SyncTarget) {}},
		"unread fields": {given: func(s *edgev2alpha1.SyncTarget) {
			s.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = long
			s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: long}}
			s.OwnerReferences = []metav1.OwnerReference{{Name: long}}
		}},
		"labels": {
			given: func(s *edgev2alpha1.SyncTarget) { s.Labels = map[string]string{"a": "b"} },
			held:  func(s *edgev2alpha1.SyncTarget) { s.Labels = map[string]string{"a": "b"} },
		},
		"many labels": {
			given: func(s *edgev2alpha1.SyncTarget) { s.Labels = manyLabels() },
			held: func(s *edgev2alpha1.SyncTarget) {
				s.Finalizers, s.Spec = nil, edgev2alpha1.SyncTargetSpec{}
				s.Annotations[annotationTooLarge] = "its labels have more than 16384 bytes"
			},
		},
		"annotations that are read": {
			given: func(s *edgev2alpha1.SyncTarget) {
				s.Annotations[edgev2alpha1.AnnotationForceRemoval], s.Annotations[edgev2alpha1.AnnotationConfirmedCluster] = "true", long
			},
			held: func(s *edgev2alpha1.SyncTarget) { s.Annotations[edgev2alpha1.AnnotationForceRemoval] = "true" },
		},
		"parameters": {
			given: func(s *edgev2alpha1.SyncTarget) {
				s.Annotations["shop.example/city"], s.Annotations["plain"] = "Florence", "x"
				s.Annotations["too-long"], s.Annotations["synchub.dev/x"], s.Annotations["internal.kcp.io/x"] = long[:1<<10], "x", "x"
			},
			held: func(s *edgev2alpha1.SyncTarget) {
				s.Annotations["shop.example/city"], s.Annotations["plain"] = "Florence", "x"
			},
		},
		"many parameters": {
			given: func(s *edgev2alpha1.SyncTarget) {
				for number := range 40 {
					s.Annotations[fmt.Sprintf("p%02d", number)] = long[:1000]
				}
			},
			held: func(s *edgev2alpha1.SyncTarget) {
				for number := range 16 {
					s.Annotations[fmt.Sprintf("p%02d", number)] = long[:1000]
				}
			},
		},
		"fields without effect": {
			given: func(s *edgev2alpha1.SyncTarget) {
				s.Spec.Cells = map[string]string{"a": long, "b": long}                                                    //nolint:staticcheck // users may set deprecated fields
				s.Spec.SupportedAPIExports = []edgev2alpha1.APIExportReference{{Export: long}, {Path: long, Export: "x"}} //nolint:staticcheck // as above
			},
			held: func(s *edgev2alpha1.SyncTarget) {
				s.Spec.Cells = map[string]string{"": ""}                                //nolint:staticcheck // as above
				s.Spec.SupportedAPIExports = make([]edgev2alpha1.APIExportReference, 1) //nolint:staticcheck // as above
			},
		},
		"a status that the hub did not write": {
			given: func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions = []metav1.Condition{{Message: long}} },
			held:  func(s *edgev2alpha1.SyncTarget) { s.Status = edgev2alpha1.SyncTargetStatus{} },
		},
		"finalizers": {
			given: func(s *edgev2alpha1.SyncTarget) { s.Finalizers = append(s.Finalizers, long) },
			held: func(s *edgev2alpha1.SyncTarget) {
				s.Finalizers, s.Spec = nil, edgev2alpha1.SyncTargetSpec{}
				s.Annotations[annotationTooLarge] = "its finalizers have more than 4096 bytes"
			},
		},
		"a spec that the schema does not allow any more": {
			given: func(s *edgev2alpha1.SyncTarget) {
				s.Spec.MailboxAccess = []edgev2alpha1.MailboxAccess{{ClusterRole: "view", Subjects: []rbacv1.Subject{{Kind: "User", Name: long}}}}
			},
			held: func(s *edgev2alpha1.SyncTarget) {
				s.Finalizers, s.Spec = nil, edgev2alpha1.SyncTargetSpec{}
				s.Annotations[annotationTooLarge] = "its spec has more than 262144 bytes"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.held == nil {
				test.held = func(*edgev2alpha1.SyncTarget) {}
			}
			given, want := syncTarget(test.given), syncTarget(test.held)
			for range 2 {
				if _, err := stripObject(given); err != nil || !apiequality.Semantic.DeepEqual(given, want) {
					t.Fatalf("got %+v, want %+v, %v", given, want, err)
				}
			}
			if TooLarge(given) != want.Annotations[annotationTooLarge] {
				t.Errorf("the reason is %q", TooLarge(given))
			}
		})
	}
}

// manyLabels returns labels that are valid one by one.
func manyLabels() map[string]string {
	labels := map[string]string{}
	for number := range 400 {
		labels[fmt.Sprint("label-", number)] = strings.Repeat("x", 63)
	}
	return labels
}

func TestCachedFieldsOfALocation(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	instances := int32(3)
	location := func(change func(*edgev2alpha1.Location)) *edgev2alpha1.Location {
		made := &edgev2alpha1.Location{}
		made.Name, made.UID, made.ResourceVersion, made.Generation, made.DeletionTimestamp = "prod", "uid", "1", 7, &metav1.Time{}
		made.Annotations, made.Labels = map[string]string{logicalcluster.AnnotationKey: "abc"}, map[string]string{"env": "prod"}
		made.Spec.Description, made.Status.Instances = "d", &instances
		change(made)
		return made
	}
	tooLarge := func(reason string) func(*edgev2alpha1.Location) {
		return func(l *edgev2alpha1.Location) {
			l.Labels, l.Spec = nil, edgev2alpha1.LocationSpec{}
			l.Annotations[annotationTooLarge] = reason
		}
	}
	for name, test := range map[string]struct{ given, held func(*edgev2alpha1.Location) }{
		"nothing large": {func(*edgev2alpha1.Location) {}, func(*edgev2alpha1.Location) {}},
		"unread fields": {func(l *edgev2alpha1.Location) {
			l.Annotations["a"], l.Finalizers, l.ManagedFields = long, []string{long}, []metav1.ManagedFieldsEntry{{Manager: long}}
			l.OwnerReferences = []metav1.OwnerReference{{Name: long}}
		}, func(*edgev2alpha1.Location) {}},
		"a spec":      {func(l *edgev2alpha1.Location) { l.Spec.Description = long }, tooLarge("its spec has more than 65536 bytes")},
		"many labels": {func(l *edgev2alpha1.Location) { l.Labels = manyLabels() }, tooLarge("its labels have more than 16384 bytes")},
		"a status that the hub did not write": {
			func(l *edgev2alpha1.Location) {
				l.Status.Conditions = []metav1.Condition{{Message: strings.Repeat(long, 4)}}
			},
			func(l *edgev2alpha1.Location) { l.Status = edgev2alpha1.LocationStatus{} },
		},
	} {
		given, want := location(test.given), location(test.held)
		for range 2 {
			if _, err := stripObject(given); err != nil || !apiequality.Semantic.DeepEqual(given, want) {
				t.Errorf("%s: got %+v, want %+v, %v", name, given, want, err)
			}
		}
		if TooLarge(given) != want.Annotations[annotationTooLarge] {
			t.Errorf("%s: the reason is %q", name, TooLarge(given))
		}
	}
}

func TestCachedFieldsOfASecret(t *testing.T) {
	secret := SecretMetadata()
	secret.Name, secret.ResourceVersion = "s", "1"
	secret.Annotations = map[string]string{logicalcluster.AnnotationKey: "abc", edgev2alpha1.AnnotationAllowedSyncTargets: "florin", "other": "x"}
	secret.Labels, secret.Finalizers = map[string]string{"a": "b"}, []string{"x"}
	want := SecretMetadata()
	want.Name, want.ResourceVersion = "s", "1"
	want.Annotations = map[string]string{logicalcluster.AnnotationKey: "abc", edgev2alpha1.AnnotationAllowedSyncTargets: "florin"}
	if _, err := stripObject(secret); err != nil || !apiequality.Semantic.DeepEqual(secret, want) {
		t.Errorf("got %+v, want %+v, %v", secret, want, err)
	}
}

// A list is read in pages, with a lower limit if a page would be too large. Each page is stripped.
func TestListsAreReadInPages(t *testing.T) {
	const count, most = 250, 20
	var limits []int64
	read, err := paginate(func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if options.ResourceVersion != "" {
			return nil, fmt.Errorf("the version %s is requested, for which a server ignores the limit", options.ResourceVersion)
		}
		limits = append(limits, options.Limit)
		if options.Limit > most {
			return nil, &transport.ExceededError{Divisible: true}
		}
		begin, _ := strconv.Atoi(options.Continue)
		page := &edgev2alpha1.SyncTargetList{}
		for number := begin; number < min(begin+int(options.Limit), count); number++ {
			page.Items = append(page.Items, *syncTarget(func(s *edgev2alpha1.SyncTarget) {
				s.Name, s.OwnerReferences = fmt.Sprint(number), []metav1.OwnerReference{{Name: "a"}}
			}))
		}
		if next := begin + int(options.Limit); next < count {
			page.Continue = strconv.Itoa(next)
		}
		return page, nil
	})(t.Context(), metav1.ListOptions{Limit: 500, ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	list := read.(*edgev2alpha1.SyncTargetList)
	if len(list.Items) != count || limits[0] != pageSize {
		t.Fatalf("%d objects of %d came by pages of %v", len(list.Items), count, limits)
	}
	for i := range list.Items {
		if list.Items[i].Name != fmt.Sprint(i) || list.Items[i].OwnerReferences != nil {
			t.Fatalf("the object %d is %+v", i, list.Items[i])
		}
	}
	failure := errors.New("kcp does not answer")
	_, err = paginate(func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, failure })(t.Context(), metav1.ListOptions{})
	if !errors.Is(err, failure) {
		t.Error(err)
	}
}
