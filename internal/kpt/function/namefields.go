package function

import (
	"strings"
)

// nameField is a field that has the name of an object of another kind. The namespace is that of whoever says it, unless it stands
// beside.
type nameField struct {
	group, kind string
	path        string
	target      groupKind
	// untyped is that a kind beside the name means another one.
	untyped bool

	// holder leads to the map that the name is in, and rest from there on.
	holder, rest []string
}

// of tells whether the object has the field.
func (f *nameField) of(o *object) bool {
	return f.kind == o.kind() && (f.group == o.group() || o.group() == "extensions")
}

// compileFields takes the paths apart.
func compileFields(fields []nameField) ([]nameField, error) {
	for i := range fields {
		steps, err := (&fieldSpec{Path: fields[i].path}).steps()
		if err != nil {
			return nil, err
		}
		fields[i].holder, fields[i].rest = steps[:len(steps)-1], steps[len(steps)-1:]
	}
	return fields, nil
}

// What Kubernetes calls a name of something else, in the words of its API reference. A reference that says its kind needs no
// mention: see renamer.typed.

// nameFields are those of whole objects.
func nameFields() []nameField {
	service, secret := groupKind{"", "Service"}, groupKind{"", "Secret"}
	class := groupKind{"storage.k8s.io", "StorageClass"}
	fields := []nameField{
		{group: "apps", kind: "StatefulSet", path: "spec/serviceName", target: service},
		{group: "apps", kind: "StatefulSet", path: "spec/volumeClaimTemplates[]/spec/storageClassName", target: class},
		{kind: "PersistentVolumeClaim", path: "spec/storageClassName", target: class},
		{kind: "PersistentVolumeClaim", path: "spec/volumeName", target: groupKind{"", "PersistentVolume"}},
		{kind: "PersistentVolume", path: "spec/storageClassName", target: class},
		{kind: "PersistentVolume", path: "spec/claimRef/name", target: groupKind{"", "PersistentVolumeClaim"}, untyped: true},
		{kind: "ServiceAccount", path: "imagePullSecrets[]/name", target: secret},
		{kind: "ServiceAccount", path: "secrets[]/name", target: secret, untyped: true},
		{group: "apiregistration.k8s.io", kind: "APIService", path: "spec/service/name", target: service},
		{
			group: "apiextensions.k8s.io", kind: "CustomResourceDefinition",
			path: "spec/conversion/webhook/clientConfig/service/name", target: service,
		},
		{group: "gateway.networking.k8s.io", kind: "Gateway", path: "spec/gatewayClassName", target: groupKind{"gateway.networking.k8s.io", "GatewayClass"}},
		{group: "gateway.networking.k8s.io", kind: "Gateway", path: "spec/listeners[]/tls/certificateRefs[]/name", target: secret, untyped: true},
	}
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		fields = append(fields, nameField{
			group: "admissionregistration.k8s.io", kind: kind, path: "webhooks[]/clientConfig/service/name", target: service,
		})
	}
	for _, kind := range []string{"HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute"} {
		const group = "gateway.networking.k8s.io"
		fields = append(fields,
			nameField{group: group, kind: kind, path: "spec/parentRefs[]/name", target: groupKind{group, "Gateway"}, untyped: true},
			nameField{group: group, kind: kind, path: "spec/rules[]/backendRefs[]/name", target: service, untyped: true})
	}
	for _, path := range []string{
		"spec/rules[]/http/paths[]/backend/service/name", "spec/rules[]/http/paths[]/backend/serviceName",
		"spec/defaultBackend/service/name", "spec/backend/serviceName",
	} {
		fields = append(fields, nameField{group: "networking.k8s.io", kind: "Ingress", path: path, target: service})
	}
	return append(fields,
		nameField{group: "networking.k8s.io", kind: "Ingress", path: "spec/tls[]/secretName", target: secret},
		nameField{group: "networking.k8s.io", kind: "Ingress", path: "spec/ingressClassName", target: groupKind{"networking.k8s.io", "IngressClass"}})
}

// podFields are those of what describes a Pod, from there on.
func podFields() []nameField {
	of := func(target groupKind, paths string) []nameField {
		fields := []nameField{}
		for path := range strings.FieldsSeq(paths) {
			fields = append(fields, nameField{path: path, target: target})
		}
		return fields
	}
	fields := of(groupKind{"", "ConfigMap"}, "volumes[]/configMap/name volumes[]/projected/sources[]/configMap/name")
	fields = append(fields, of(groupKind{"", "Secret"}, "volumes[]/secret/secretName volumes[]/projected/sources[]/secret/name "+
		"volumes[]/csi/nodePublishSecretRef/name volumes[]/azureFile/secretName imagePullSecrets[]/name")...)
	for _, containers := range []string{"containers", "initContainers", "ephemeralContainers"} {
		fields = append(fields, of(groupKind{"", "ConfigMap"}, containers+"[]/env[]/valueFrom/configMapKeyRef/name "+
			containers+"[]/envFrom[]/configMapRef/name")...)
		fields = append(fields, of(groupKind{"", "Secret"}, containers+"[]/env[]/valueFrom/secretKeyRef/name "+
			containers+"[]/envFrom[]/secretRef/name")...)
	}
	fields = append(fields, of(groupKind{"", "ServiceAccount"}, "serviceAccountName serviceAccount")...)
	fields = append(fields, of(groupKind{"", "PersistentVolumeClaim"}, "volumes[]/persistentVolumeClaim/claimName")...)
	fields = append(fields, of(groupKind{"storage.k8s.io", "StorageClass"}, "volumes[]/ephemeral/volumeClaimTemplate/spec/storageClassName")...)
	fields = append(fields, of(groupKind{"scheduling.k8s.io", "PriorityClass"}, "priorityClassName")...)
	return append(fields, of(groupKind{"node.k8s.io", "RuntimeClass"}, "runtimeClassName")...)
}
