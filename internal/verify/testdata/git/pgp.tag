object 7fd95b8da4124151ae843825bc716905dc4346ba
type commit
tag v1.0.0
tagger Ada Upstream <ada@upstream.example> 1795402161 +0000

a tag
-----BEGIN PGP SIGNATURE-----

iHUEABYIAB0WIQQn8tZd5xsyWFcTy9R8RKSyv1b1fwUCawOpsQAKCRB8RKSyv1b1
fzTpAP9a+UAwtolTPCOqZrsPGS5YLZJLHfKwVI3LMCP0Zix3MAEA8eHgwFc46H0t
fhi/T0zqNx6L94eQ5Y0Nb+TkNwpaZgk=
=c/3+
-----END PGP SIGNATURE-----
