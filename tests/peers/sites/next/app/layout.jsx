import './page.css';

export const metadata = { title: 'Ferry' };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>
        <nav>Ferry</nav>
        {children}
        <footer />
      </body>
    </html>
  );
}
