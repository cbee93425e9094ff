package bench;

import ca.uhn.fhir.interceptor.api.Hook;
import ca.uhn.fhir.interceptor.api.Interceptor;
import ca.uhn.fhir.interceptor.api.Pointcut;
import ca.uhn.fhir.rest.server.exceptions.AuthenticationException;
import com.auth0.jwt.JWT;
import com.auth0.jwt.JWTVerifier;
import com.auth0.jwt.algorithms.Algorithm;
import com.auth0.jwt.exceptions.JWTVerificationException;
import jakarta.servlet.http.HttpServletRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.interfaces.RSAPublicKey;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;

/** Who may ask: a signed token, verified at every request. */
@Interceptor
public final class TokenCheck {
  private final JWTVerifier verifier;

  public TokenCheck() throws Exception {
    String pem = Files.readString(Path.of(System.getenv("PUBLIC_KEY")));
    String body = pem.replaceAll("-----[A-Z ]+-----|\\s", "");
    X509EncodedKeySpec spec = new X509EncodedKeySpec(Base64.getDecoder().decode(body));
    RSAPublicKey key = (RSAPublicKey) KeyFactory.getInstance("RSA").generatePublic(spec);
    verifier =
        JWT.require(Algorithm.RSA256(key, null))
            .withIssuer(System.getenv("ISSUER"))
            .withAudience(System.getenv("AUDIENCE"))
            .build();
  }

  @Hook(Pointcut.SERVER_INCOMING_REQUEST_POST_PROCESSED)
  public boolean check(HttpServletRequest request) {
    String header = request.getHeader("Authorization");
    if (header == null || !header.startsWith("Bearer ")) {
      throw new AuthenticationException("An access token is required.");
    }
    try {
      verifier.verify(header.substring("Bearer ".length()));
    } catch (JWTVerificationException error) {
      throw new AuthenticationException("The access token is not valid here.", error);
    }
    return true;
  }
}
