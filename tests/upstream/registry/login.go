package registry

import (
	"encoding/base64"
	"encoding/json"
)

// DockerConfig is a .dockerconfigjson with the user's name and password for this registry. A user that the
// registry does not know gets a wrong password.
func (r *Registry) DockerConfig(user string) []byte {
	password, ok := r.tokens.password(user)
	if !ok {
		password = "wrong password of " + user
	}
	return r.dockerConfig(map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password))})
}

// DockerConfigIdentity is a .dockerconfigjson with the user's identity token for this registry.
func (r *Registry) DockerConfigIdentity(user string) []byte {
	return r.dockerConfig(map[string]string{"identitytoken": r.tokens.IdentityToken(user)})
}

// DockerConfigToken is a .dockerconfigjson with a registry token, as TokenServer.RegistryToken issues them.
func (r *Registry) DockerConfigToken(token string) []byte {
	return r.dockerConfig(map[string]string{"registrytoken": token})
}

func (r *Registry) dockerConfig(entry map[string]string) []byte {
	config, err := json.Marshal(map[string]any{"auths": map[string]any{r.Host(): entry}})
	if err != nil {
		panic(err) // Maps of strings can be encoded.
	}
	return config
}

func (s *TokenServer) password(user string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	password, ok := s.users[user]
	return password, ok
}
