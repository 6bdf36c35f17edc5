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

package check

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

func TestDump(t *testing.T) {
	g := NewWithT(t)
	directory := filepath.Join(t.TempDir(), "report")
	files, err := newDump(directory)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = newDump(directory)
	g.Expect(err).To(MatchError(os.ErrExist), "other files are no part of a report")

	florin := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "former", "team": "shop"}}}
	florin.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: "a \x1b[31m text"}}
	hub := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "synchub", Name: "hub"}}
	hub.Spec.Containers = []corev1.Container{{Name: "hub", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "confidential"}}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "florin-kubeconfig"}, StringData: map[string]string{"kubeconfig": "confidential"}}
	from := fake.NewClientBuilder().WithScheme(cli.Scheme).WithObjects(florin, hub, secret).Build()
	g.Expect(files.workspace(t.Context(), "workspace", from, &edgev2alpha1.SyncTargetList{}, &corev1.PodList{})).To(Succeed())

	written, err := os.ReadDir(directory)
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	all := ""
	for _, file := range written {
		content, err := fs.ReadFile(os.DirFS(directory), file.Name())
		g.Expect(err).NotTo(HaveOccurred())
		names, all = append(names, file.Name()), all+string(content)
	}
	g.Expect(names).To(Equal([]string{"workspace-EventList.yaml", "workspace-PodList.yaml", "workspace-SyncTargetList.yaml"}))
	g.Expect(all).To(And(ContainSubstring("name: florin"), ContainSubstring("team: shop"), ContainSubstring("name: TOKEN")))
	g.Expect(all).NotTo(Or(ContainSubstring("confidential"), ContainSubstring("former"), ContainSubstring("\x1b")))
}

func TestDumpIsBounded(t *testing.T) {
	g := NewWithT(t)
	files, err := newDump(filepath.Join(t.TempDir(), "report"))
	g.Expect(err).NotTo(HaveOccurred())
	total := 0
	for name := range strings.FieldsSeq("a b c d e f g h i j k l m") {
		g.Expect(files.write(name, []byte(strings.Repeat("x", maxFileBytes+1)))).To(Succeed())
		file, err := os.Stat(filepath.Join(files.directory, name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(file.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		total += int(file.Size())
	}
	g.Expect(total).To(BeNumerically("<", maxDumpBytes+maxFileBytes))
}

// fakeVersion is a hosting cluster with a version.
type fakeVersion string

func (v fakeVersion) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: string(v)}, nil
}

func TestBeforeTheInstallation(t *testing.T) {
	for name, test := range map[string]struct {
		version string
		denied  string
		want    []string
	}{
		"all is there":   {version: "v1.35.4", want: []string{"ok the hosting cluster has version v1.35.4, and you may install the chart into the namespace hub"}},
		"an old cluster": {version: "v1.29.0", want: []string{"PROBLEM the hosting cluster has version v1.29.0", "ok the hosting cluster"}},
		"a right lacks":  {version: "v1.35.4", denied: "clusterroles", want: []string{"PROBLEM to install the chart into the namespace hub you lack the rights create clusterroles"}},
	} {
		reviewed := fake.NewClientBuilder().WithScheme(cli.Scheme).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
				review := object.(*authorizationv1.SelfSubjectAccessReview)
				review.Status.Allowed = review.Spec.ResourceAttributes.Resource != test.denied
				return nil
			},
		}).Build()
		report := &Report{}
		report.preHosting(t.Context(), reviewed, fakeVersion(test.version), "hub")
		if len(report.Findings) != len(test.want) {
			t.Errorf("%s: got %+v", name, report.Findings)
			continue
		}
		for i, finding := range report.Findings {
			if got := string(finding.Result) + " " + finding.Message; !strings.HasPrefix(got, test.want[i]) {
				t.Errorf("%s: got %q", name, got)
			}
		}
	}
}
